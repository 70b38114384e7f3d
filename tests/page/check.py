"""The page in headless Chromium: what it shows, what it sends, and that nothing written becomes markup.

    python3 tests/page/check.py [--shots FOLDER] [--url http://127.0.0.1:8080/]

Needs playwright (PyPI) and chromium; without them it exits with 77. With --url a real server answers, and only what
does not depend on the answer is checked.
"""
import argparse
import pathlib
import shutil
import sys

try:
    from playwright.sync_api import sync_playwright
except ImportError:
    print("skipped: no playwright")
    sys.exit(77)
import fake_server

failures = []


def check(condition, what):
    print(("ok    " if condition else "WRONG ") + what)
    if not condition:
        failures.append(what)


class Page:
    def __init__(self, browser, url, shots, **options):
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.problems = []
        self.page.on("console", lambda m: self.problems.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda e: self.problems.append(str(e)))
        self.foreign = []
        self.page.on("request", lambda r: self.foreign.append(r.url) if not r.url.startswith(url) else None)
        self.shots = shots
        self.page.goto(url)
        self.page.wait_for_selector("#input")

    def ask(self, text, wait=True):
        self.page.fill("#input", text)
        self.page.press("#input", "Enter")
        if wait:
            self.page.wait_for_selector("#send:not([hidden])", timeout=60000)

    def count(self, selector):
        return self.page.locator(selector).count()

    def shot(self, name):
        if self.shots:
            self.page.screenshot(path=str(self.shots / (name + ".png")))


def fake_checks(browser, url, shots):
    desk = Page(browser, url, shots, viewport={"width": 1200, "height": 850}, color_scheme="light")
    page = desk.page
    desk.shot("empty")
    desk.ask("How do I sort?")
    check(desk.count(".message") == 2 and desk.count("details.thinking") == 1, "an answer with its thinking folded")
    check(not page.locator("details.thinking").evaluate("d => d.open"), "the thinking is folded when the answer is there")
    check(desk.count(".markdown h2") == 1 and desk.count(".markdown ol > li") == 2 and desk.count(".markdown li ul > li") == 2, "headings and lists")
    check(desk.count(".markdown table tbody tr") == 2 and desk.count(".codeblock pre code") == 1 and desk.count("blockquote") == 1, "table, code, quote")
    check(page.locator(".markdown a").first.get_attribute("href") == "https://example.org/sort_(C++)", "a link with brackets")
    check("300 reused" in page.inner_text(".message.assistant .actions"), "usage is shown")
    desk.shot("answer")

    desk.ask("hostile")
    page.wait_for_timeout(300)
    last = page.locator(".message.assistant").last
    check(page.evaluate("window.hacked") is None, "nothing of a hostile answer ran")
    check(last.locator("script, img, iframe, svg, b, i").count() == 0, "and none of its tags became elements")
    check("<script>window.hacked = 1</script>" in last.inner_text(), "they show as text")
    check(all(h.startswith(("https://", "http://", "mailto:")) for h in last.locator("a").evaluate_all("l => l.map(a => a.href)")), "links are web addresses")
    check("<b>thought</b>" in last.locator(".thinking").evaluate("d => d.textContent"), "thinking is text too")
    desk.shot("hostile")
    desk.ask("<img src=x onerror=window.hacked=9> **user**")
    check(page.locator(".message.user").last.locator(".body *").count() == 0, "the user's text is text")

    n_seen = len(fake_server.SEEN)
    page.locator(".message.assistant").nth(0).locator("text=Regenerate").click()
    page.wait_for_selector("#send:not([hidden])")
    check(desk.count(".message") == 2 and len(fake_server.SEEN) == n_seen + 1, "regenerate drops what came after")
    page.locator(".message.user").first.locator("text=Edit").click()
    page.locator(".message textarea").fill("Is it stable?")
    desk.shot("edit")
    page.locator(".message textarea").press("Enter")
    page.wait_for_selector("#send:not([hidden])")
    check(desk.count(".message") == 2 and fake_server.SEEN[-1]["messages"][-1]["content"] == "Is it stable?", "an edited message is asked again")

    desk.ask("slow", wait=False)
    page.wait_for_selector(".message.assistant:nth-child(4) .markdown")
    page.keyboard.press("Escape")
    page.wait_for_selector("#send:not([hidden])")
    check("stopped" in page.locator(".message.assistant").last.inner_text(), "Escape stops an answer")
    page.wait_for_timeout(400)
    check("gone" in fake_server.SEEN, "and the server notices")

    desk.ask("use the tool")
    check("get_weather" in page.locator("details.call summary").inner_text() and '"days": 3' in page.locator("details.call pre").inner_text(), "a tool call with its arguments")
    check(not page.locator("details.thinking").last.evaluate("d => d.open"), "the thinking before a call folds too")
    desk.shot("tool")
    page.fill("textarea[aria-label='Result of get_weather']", "sunny")
    page.click("text=Send results")
    page.wait_for_selector("#send:not([hidden])")
    sent = fake_server.SEEN[-1]["messages"]
    check(sent[-1] == {"role": "tool", "content": "sunny", "tool_call_id": "call_1"} and sent[-2]["tool_calls"][0]["id"] == "call_1", "its result goes back")
    desk.ask("fail")
    check("expected 0 to 2" in page.locator(".error").last.inner_text() and page.locator(".error b").count() == 0, "an error is shown as text")

    page.keyboard.press("Control+,")
    page.fill("#set-temperature", "0.3")
    page.fill("#set-system", "Be brief.")
    page.select_option("#set-effort", "low")
    page.fill("#set-schema", '{"type": "object"}')
    desk.shot("settings")
    page.keyboard.press("Escape")
    check(page.locator("#settings").is_hidden(), "Escape closes the settings")
    desk.ask("How?")
    sent = fake_server.SEEN[-1]
    check(sent["temperature"] == 0.3 and sent["reasoning_effort"] == "low" and sent["messages"][0] == {"role": "system", "content": "Be brief."}
          and sent["response_format"]["json_schema"]["schema"] == {"type": "object"}, "settings are sent")
    page.reload()
    page.wait_for_selector(".message")
    check(desk.count(".message") > 4 and page.input_value("#set-temperature") == "0.3", "conversation and settings outlive a reload")
    page.click("#new-chat")
    check(desk.count(".message") == 0, "a new chat is empty")

    page.click("#tab-monitor")
    page.wait_for_selector(".card")
    page.wait_for_timeout(4200)
    check(desk.count(".card") >= 13 and "82.5 %" in page.inner_text("#view-monitor"), "the monitor shows the server's state")
    desk.shot("monitor")
    check(desk.count("#view-monitor [role=status]") == 0, "and no complaint")
    fake_server.STUCK.append(True)
    page.wait_for_selector("text=at one thing for 13 s: a pass")
    check(True, "but that a pass hangs")
    fake_server.STUCK.clear()
    page.click("#theme")
    check(page.evaluate("document.documentElement.dataset.theme") == "dark", "the theme changes")
    desk.shot("monitor-dark")
    page.focus("#tab-monitor")
    page.keyboard.press("ArrowLeft")
    check(page.locator("#view-chat").is_visible(), "arrow keys change the view")
    page.wait_for_timeout(200)
    desk.ask("How do I sort?")
    desk.shot("answer-dark")
    problems = [p for p in desk.problems if "400" not in p]
    check(not problems and not desk.foreign, "no errors, nothing loaded from elsewhere: " + "; ".join(problems + desk.foreign))

    phone = Page(browser, url, shots, viewport={"width": 390, "height": 780}, is_mobile=True, has_touch=True, color_scheme="dark")
    phone.ask("How do I sort?")
    phone.page.wait_for_timeout(200)
    check(phone.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out on a phone")
    phone.shot("phone")
    phone.page.click("#open-settings")
    phone.shot("phone-settings")
    phone.page.click("#open-settings")
    phone.page.click("#tab-monitor")
    phone.page.wait_for_selector(".card")
    check(phone.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nor in the monitor")
    phone.shot("phone-monitor")


def real_checks(browser, url, shots):
    desk = Page(browser, url, shots, viewport={"width": 1200, "height": 850}, color_scheme="light")
    desk.ask("What is 37 + 58?")
    check("95" in desk.page.locator(".message.assistant").last.inner_text(), "the model answers")
    check(desk.count("details.thinking") == 1, "after thinking")
    desk.ask("And 12 + 30?")
    check("reused" in desk.page.locator(".message.assistant").last.inner_text(), "the conversation is reused")
    desk.page.locator(".message.user").last.locator("text=Edit").click()
    desk.page.locator(".message textarea").fill("What is 20 + 22?")
    desk.page.locator(".message textarea").press("Enter")
    desk.page.wait_for_selector("#send:not([hidden])", timeout=60000)
    check("42" in desk.page.locator(".message.assistant").last.inner_text(), "an edited message is answered")
    desk.shot("real-chat")
    desk.page.click("#tab-monitor")
    desk.page.wait_for_selector(".card")
    desk.page.wait_for_timeout(2500)
    check(desk.count(".card") >= 8, "the monitor reads the status")
    desk.shot("real-monitor")
    check(not desk.problems and not desk.foreign, "no errors, nothing loaded from elsewhere: " + "; ".join(desk.problems + desk.foreign))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shots", type=pathlib.Path)
    parser.add_argument("--url")
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not chromium:
        print("skipped: no chromium")
        sys.exit(77)
    if options.shots:
        options.shots.mkdir(parents=True, exist_ok=True)
    server = None if options.url else fake_server.serve()
    url = options.url or "http://127.0.0.1:%d/" % server.server_port
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        (real_checks if options.url else fake_checks)(browser, url, options.shots)
        browser.close()
    if failures:
        sys.exit("%d checks failed" % len(failures))


if __name__ == "__main__":
    main()
