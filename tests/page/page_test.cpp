#include "page/page.h"

#include <regex>
#include <string>

#include <gtest/gtest.h>

namespace forebay {
namespace {

const char* const kScripts[] = {"main.js",     "chat.js", "markdown.js", "monitor.js",
                                "settings.js", "api.js",  "dom.js"};

std::string content(const std::string& path) {
  const std::optional<PageFile> file = find_page_file(path);
  EXPECT_TRUE(file) << path;
  return file ? std::string(file->content) : "";
}

TEST(Page, HasItsFiles) {
  EXPECT_EQ(find_page_file("/")->content_type, "text/html; charset=utf-8");
  EXPECT_EQ(find_page_file("/page/style.css")->content_type, "text/css; charset=utf-8");
  EXPECT_EQ(find_page_file("/page/icon.svg")->content_type, "image/svg+xml");
  for (const std::string name : kScripts)
    EXPECT_EQ(find_page_file("/page/" + name)->content_type, "text/javascript; charset=utf-8") << name;
  for (const char* path : {"", "/page/", "/page/../main.js", "/main.js", "/page/none.js", "/page/style.css/"})
    EXPECT_FALSE(find_page_file(path)) << path;
}

TEST(Page, RefersOnlyToItself) {
  const std::string index = content("/");
  const std::regex reference(R"re((?:src|href)="([^"]*)")re");
  for (std::sregex_iterator m(index.begin(), index.end(), reference), end; m != end; ++m)
    EXPECT_TRUE(find_page_file((*m)[1].str())) << (*m)[1];
  const std::regex import(R"re(from "\./([a-z.]+)")re");
  for (const std::string name : kScripts) {
    const std::string script = content("/page/" + name);
    for (std::sregex_iterator m(script.begin(), script.end(), import), end; m != end; ++m)
      EXPECT_TRUE(find_page_file("/page/" + (*m)[1].str())) << name << ": " << (*m)[1];
  }
}

/// What would let text become markup or code, and what the security policy would stop.
TEST(Page, MakesNoMarkupFromText) {
  EXPECT_FALSE(
      std::regex_search(content("/"), std::regex(R"(<script(?![^>]*src=)|<style|\son[a-z]+=|\sstyle=)")));
  for (const std::string name : kScripts)
    for (const char* word : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
                             "new Function", "setTimeout(\"", "DOMParser", "srcdoc"})
      EXPECT_EQ(content("/page/" + name).find(word), std::string::npos) << name << " has " << word;
  EXPECT_EQ(page_security_policy().find("unsafe"), std::string_view::npos);
}

}  // namespace
}  // namespace forebay
