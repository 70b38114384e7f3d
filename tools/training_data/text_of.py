"""Files of packages as plain text."""
import gzip
import html.parser
import re

SKIPPED_TAGS = {"script", "style", "head", "nav", "svg"}
BLOCK_TAGS = {"p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "pre", "table", "dt", "dd", "section"}


class _Html(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.out, self.skip, self.pre = [], 0, 0

    def handle_starttag(self, tag, attrs):
        self.skip += tag in SKIPPED_TAGS
        self.pre += tag == "pre"
        if tag in BLOCK_TAGS:
            self.out.append("\n")

    def handle_endtag(self, tag):
        self.skip -= tag in SKIPPED_TAGS and self.skip > 0
        self.pre -= tag == "pre" and self.pre > 0
        if tag in BLOCK_TAGS:
            self.out.append("\n")

    def handle_data(self, data):
        if not self.skip:
            self.out.append(data if self.pre else re.sub(r"\s+", " ", data))


def html(text):
    parser = _Html()
    parser.feed(text)
    return "".join(parser.out)


def man(text):
    """A manual page without its requests and escapes; headings stay on lines of their own."""
    lines = []
    for line in text.split("\n"):
        if line.startswith(('.\\"', "'\\\"", ".\\}")):
            continue
        if line[:1] in ".'":
            request, _, rest = line[1:].partition(" ")
            if request in ("TH", "Dd", "Os", "de", "ig", "nr", "ds", "so", "if", "ie", "el", "tr", "ft", "in", "ad", "ne"):
                continue
            if request in ("SH", "Sh", "SS", "Ss"):
                lines += ["", rest.strip('" '), ""]
                continue
            if request in ("PP", "P", "LP", "Pp", "TP", "IP", "sp", "br", "RS", "RE", "nf", "fi", "EX", "EE"):
                lines.append("" if request != "IP" else rest.split('"')[1] if '"' in rest else "")
                continue
            line = rest.replace('"', "") if request[:1].isupper() else ""
        lines.append(line)
    text = "\n".join(lines)
    text = re.sub(r"\\f(\[\w*\]|\(..|.)", "", text)
    text = re.sub(r"\\s[+-]?\d", "", text)
    for escape, plain in (("\\-", "-"), ("\\(aq", "'"), ("\\(em", "-"), ("\\(en", "-"), ("\\(bu", "*"), ("\\(dq", '"'),
                          ("\\e", "\\"), ("\\ ", " "), ("\\~", " "), ("\\&", ""), ("\\|", ""), ("\\/", ""), ("\\c", ""),
                          ("\\(lq", '"'), ("\\(rq", '"'), ("\\(oq", "'"), ("\\(cq", "'"), ("\\(co", "(C)")):
        text = text.replace(escape, plain)
    return re.sub(r"\\\[(\w+)\]", "", text)


def _dictionary(text):
    """Entries begin at the left margin; their text is indented."""
    entry = []
    for line in text.split("\n"):
        if line and not line[0].isspace() and entry:
            yield "\n".join(entry)
            entry = []
        entry.append(line)
    yield "\n".join(entry)


def _grouped(parts, size=4000):
    """Short pieces joined into documents of about `size` characters."""
    group, n = [], 0
    for part in parts:
        group.append(part.strip("\n"))
        n += len(part)
        if n >= size:
            yield "\n\n".join(group)
            group, n = [], 0
    if group:
        yield "\n\n".join(group)


def texts(path):
    """The documents of one file; nothing for what is no text."""
    name = path.name
    data = path.read_bytes()
    if name.endswith((".gz", ".dz")):
        try:
            data = gzip.decompress(data)
        except OSError:
            return
        name = name[:-3]
    if b"\0" in data[:4096]:
        return
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    parts = str(path)
    if path.name.endswith(".dz"):
        yield from _grouped(_dictionary(text))
    elif "/man/" in parts:
        yield man(text)
    elif "/games/fortunes/" in parts and not name.endswith((".dat", ".u8")):
        yield from _grouped(text.split("\n%\n"))
    elif name.endswith((".html", ".htm")) or re.search(r"\.html\.\w\w$", name):
        yield html(text)
    elif name.endswith((".py", ".txt", ".rst", ".pod", ".adoc", ".md")):
        yield text


def clean(text):
    text = text.replace("\r\n", "\n").replace("\t", "    ").replace("\f", "\n")
    text = "".join(c for c in text if c == "\n" or c >= " ")
    text = re.sub(r"[ \u00a0]+\n", "\n", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"
