#!/usr/bin/env python3
"""Writes tests/tokenizer/parity.jsonl: strings and the token ids that HF `tokenizers` gives them.

    python3 tools/make_tokenizer_fixtures.py [--vocabulary tokenizer.json]

Needs the `tokenizers` package. With --vocabulary, first stores a compact copy of that file as
tests/tokenizer/pebble_tokenizer.json; the vocabulary of the fixtures is always that copy,
        run with three pre-tokenizers.

A line is an object with `text`, or `base64` where the bytes are not UTF-8 (they are decoded with errors="replace"),
        and
  qwen35   normalised to NFC, all added tokens matched
  qwen2    the same with qwen2's pattern               } left out
  smollm   digits and GPT-2's pattern, no NFC          } where equal
  raw      qwen35 without NFC                          } to qwen35
  plain    qwen35 with control tokens read as text; the tokens of USER_DEFINED still match
  cuts     bytes of each piece that the pre-tokenizer alone makes of the text as it is: qwen35's,
           then qwen2's and smollm's as lists in a list where one of them differs
"""
import argparse
import base64
import json
import pathlib
import random
import unicodedata

from tokenizers import Tokenizer, normalizers

HERE = pathlib.Path(__file__).resolve().parent.parent / "tests" / "tokenizer"
N_STRINGS = 5400

QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
         r"|\s+(?!\S)|\s+")
USER_DEFINED = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]

# Each list is one subject; generated strings join items of one or several.
ENGLISH = """The quick brown fox jumps over the lazy dog.|I'm sure they've seen it; we'll go, he'd said, you're late.|
DON'T SHOUT, IT'S NOT THE KIDS' FAULT, WE'LL SEE, THEY'VE GONE, I'D SAY, YOU'RE IN|
I'M OUT|it'S It'LL we'Ve I'M you'rE he'D can'T|
'tis the season, 'twas night; rock 'n' roll|o'clock O'Brien l'été d'accord|the dogs' bowls'|x's y't z're a've b'm c'll d'd|
'''quoted''' ''s 'ss 'st 'tt|A hyphen-ated, slash/ed, under_scored, dot.ted word|e.g. i.e. etc. U.S.A. Ph.D.|
"Quotes" “curly” ‘single’ «guillemets» it’s they’re|Wait... what?! No!!! Yes??? (maybe) [perhaps] {surely}|
naïve café résumé coöperate façade Ångström jalapeño|Straße, Übung, Łódź, Dvořák, Ðuro, œuvre|
ﬁnal ﬂow oﬃce""".replace("\n", "").split("|")
LONG_S = ["it'ſ", "'ſ", "IT'ſ time", "ſtraße 'ſt", "we'S", "'ſſ", "K'K Å'Å", "a'ſ b'S c's"]
NUMBERS = """0|7|42|1234567890|3.14159|-273.15|1,000,000|1e-10|0xDEADBEEF|2026-11-29|12:34:56|192.168.0.1|+1 (555) 010-9999|
$19.99|50%|1st 2nd 3rd|v1.2.3-rc4|٠١٢٣٤٥٦٧٨٩|۰۱۲۳|०१२३४५|๐๑๒๓|၀၁၂|１２３４|一二三四五|½ ¼ ¾ ⅓|² ³ ¹ ⁴ ₂|Ⅳ Ⅻ ⅷ|① ② ⑳ ㉑|
𝟘𝟙𝟚 𝟏𝟐|༠༡༢|𐒠𐒡|᠐᠑|৪৫৬|
12th1a2b3c|5km 6 km 7  km|a1 b22 c333 d4444|1 2 3  4   5""".replace("\n", "").split("|")
CODE = ["def f(x):\n    return x ** 2  # square\n", "for (int i = 0; i < n; ++i) {\n\tsum += a[i];\n}\n",
        "if x==1:\n\t\tpass\n\telse:\n",
        "SELECT name, count(*) FROM t WHERE id >= 10 GROUP BY name;", "#include <vector>\nint main() { return 0; }\n",
        "{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\", \"days\": 3}}",
        "{\"a\":[1,2,{\"b\":null}],\"c\":\"\\u00e9\\n\"}",
        "<div class=\"x\">&amp; &lt;b&gt;</div>", "fn main() -> Result<(), Box<dyn Error>> { Ok(()) }",
        "let y = x?.z ?? `t${1}`;",
        "$ ls -la | grep '^d' > out.txt 2>&1", "x = {'a': 1, \"b\": [2, 3]}; y = x['a'] if x else None",
        "// TODO(me): fix\n/* c */",
        "a->b::c(d)<<e>>f!=g&&h||i", "regex: ^\\s*(\\w+)\\s*=\\s*\"([^\"]*)\"$", "```python\nprint('hi')\n```\n",
        "| a | b |\n|---|---|\n| 1 | 2 |\n",
        "https://example.org/path?q=1&r=%20#frag", "user@example.com", "C:\\Users\\me\\file.txt",
        "/usr/lib/x86_64-linux-gnu/", "snake_case camelCase PascalCase SCREAMING_CASE kebab-case",
        "####### heading", "----------", "=================", "......", "!!!!!!!!", "(((((((())))))))", "\\\\\\\\",
        "\"\"\"doc\"\"\"", "\t\tindented\n\t\t\tmore\n", "        eight\n            twelve\n"]
SPACES = [" ", "  ", "   ", "    ", "        ", " " * 31, " " * 64, "\t", "\t\t\t", " \t ", "\n", "\n\n",
          "\n\n\n\n", "\r\n", "\r\n\r\n", "\r", "\r\r", "\n\r", " \n", "\n ", "  \n\n  x",
          "  \n\n  ", "\t\n\t\n", "\v", "\f", "\u0085", "\u00a0", "\u00a0\u00a0", "\u1680", "\u2000\u2001\u2002",
          "\u2003", "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\u3000\u3000",
          " \u00a0 ", "\u3000\n", "\u0085\u0085\n", " \u2028 \n"]
# Neither letters nor White_Space, though some engines think otherwise.
INVISIBLE = ["\u180e", "\u200b", "\u200c", "\u200d", "\u200e", "\ufeff", "\u2060", "\u00ad", "\x00", "\x01", "\x07",
             "\x1b[0m", "\x1c", "\x1d", "\x1e", "\x1f", "\x7f", "\x80", "\x9f", "\ufffd", "\ufffe", "\uffff",
             "\U0010ffff",
             "\ue000", "\U000f0000", "\ufe0f", "\U000e0001", "\U000e0041", "\u034f", "\u115f", "\u3164"]
EMOJI = ["😀", "👍🏽", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇯🇵", "🇺🇸🇬🇧🇫🇷", "❤️", "☕", "✅", "👩🏿‍🚀", "🧑‍🤝‍🧑", "1️⃣", "#️⃣", "🏴󠁧󠁢󠁥󠁮󠁧󠁿",
         "🎉🎉🎉", "→ ← ↑ ↓", "★☆", "♪♫", "∑∏∫√∞≠≤≥", "€£¥₹₿", "©®™", "…—–‐", "•·◦", "█▓▒░", "┌─┐│└┘", "🫠🫡", "🤷‍♂️"]
MARKS = ["e\u0301", "é", "a\u0308\u0301", "o\u0302\u0323", "o\u0323\u0302", "ộ", "\u0301", "\u0301\u0302 x",
         "n\u0303o", "A\u030a", "\u212b", "q\u0307\u0323", "q\u0323\u0307", "\u0344", "\u0958", "\u0915\u093c",
         "\u09c7\u09be", "\u0b47\u0b3e", "\u0bc6\u0bbe",
         "\u0cc6\u0cd5", "\u0dd9\u0dcf\u0dca", "\u1025\u102e", "\u2126", "\u212a", "\u037e", "\u1fef", "\u2000",
         "\u2329\u232a", "\ufb1d", "\ufb2c", "\uf900", "\U0002f800", "\u304b\u3099", "\u30cf\u309a", "が",
         "\u1100\u1161\u11a8", "\u1100\u1161", "\uac00\u11a8", "\u1112\u1161\u11ab\u1100\u1173\u11af",
         "Z\u0351\u036b\u0343\u036a\u0302a\u0343\u0329\u0354l\u0325\u0325g\u0353\u0322o\u0321", "x\u20dd",
         "\u05d0\u05b7\u05bc", "\u0627\u0653", "\u0622", "\u0651\u064e\u0651", "\u0e01\u0e33", "\u0f71\u0f72",
         "\U0001d15e", "\U000110a5\U000110ba"]
THAI = ["สวัสดีครับ", "ภาษาไทย", "น้ำแข็ง", "กรุงเทพมหานคร", "ผมชื่ออเล็กซ์", "เด็กๆ เล่น", "ราคา ๑๒๓ บาท", "ที่นี่"]
JAPANESE = ["日本語のテキスト", "東京都に行きました。", "ラーメンを食べる", "ひらがなカタカナ漢字", "「こんにちは」", "価格は１，２００円です", "サーバーを再起動してください",
            "ﾊﾝｶｸ ｶﾅ", "パーティー", "々〆〇", "①番目の項目", "ー〜", "空 白"]
CHINESE = ["你好，世界！", "今天是2026年8月13日", "中文分词测试", "繁體中文", "《書名》", "𠮷野家", "㐀㐁", "，。！？；：", "\U00031350\U000323af",
           "\U0002ebf0x"]
HINDI = ["नमस्ते दुनिया", "हिन्दी में लिखें", "क्षत्रिय", "श्री", "ज़िंदगी", "पढ़ाई", "१२३ रुपये", "தமிழ் மொழி",
         "বাংলা ভাষা", "తెలుగు", "ಕನ್ನಡ", "മലയാളം", "ગુજરાતી", "ਪੰਜਾਬੀ", "සිංහල", "မြန်မာ", "ខ្មែរ", "ລາວ",
         "བོད་སྐད།"]
ARABIC = ["مرحبا بالعالم", "اَلْعَرَبِيَّةُ", "فارسی: سلام، چطوری؟", "اردو", "שלום עולם", "שָׁלוֹם", "١٢٣ ٤٥٦",
          "لا إله", "ﷺ", "ܫܠܡܐ", "ދިވެހި"]
KOREAN = ["안녕하세요", "대한민국 서울", "한글 테스트", "ㄱㄴㄷㅏㅑ", "값이 1,000원", "\u1112\u1161\u11ab\u1100\u1173\u11af", "뷁 쀍"]
OTHER = ["Привет, мир! Ёлка й", "Ελληνικά άέήίόύώ ΐ", "Հայերեն", "ქართული", "አማርኛ", "ᏣᎳᎩ", "ᠮᠣᠩᠭᠣᠯ",
         "Tiếng Việt rất đẹp", "Việ\u0302t", "𝒜𝓁𝓅𝒽𝒶 𝔹𝕖𝕥𝕒", "𐍈𐌰𐌽", "ⓐⓑⓒ", "ﬀﬁﬂ", "ǅǈ", "ʰʲʷ", "ªº", "ꙮ", "𒀀𒁀", "𓀀",
         "\u1c89\ua7cb", "\U000105c0\U00010d4a", "\U0001e4f0\U0001ccf0", "\u0897", "Ꮿꭰ"]
SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>",
            "<tool_response>", "</tool_response>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>"]
NEARLY_SPECIAL = ["<|im_start|", "|im_end|>", "<|im_end|>>", "<<|im_start|>", "<think", "think>", "< think>",
                  "<Think>", "</think", "<|im_start |>", "<|endoftext|", "<|<|im_end|>|>", "<tool_", "<|", "|>",
                  "<", "[PAD5]", "[PAD12288]", "<|pad|>", "<｜im_end｜>"]
CHAT = ["<|im_start|>user\nWhat is 37 + 58?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n95<|im_end|>\n",
        "<|im_start|>system\nYou are terse.<|im_end|>\n<|im_start|>user\n2+2?<|im_end|>\n<|im_start|>assistant\n<think>\n",
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call><|im_end|>\n",
        "<|im_start|>user\n<tool_response>\n{\"temp\": 3}\n</tool_response><|im_end|>\n",
        "<|vision_start|><|image_pad|><|vision_end|>Describe it."]
INVALID = [b"\xff", b"\xfe\xff", b"\x80", b"\xbf\xbf\xbf", b"\xc3", b"\xc3(", b"\xc0\xaf", b"\xc1\xbf", b"\xe2\x82",
           b"\xe2\x28\xa1", b"\xe2\x82(", b"\xe0\x80\x80", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xed\xbf\xbf",
           b"\xf0\x9f\x98",
           b"\xf0\x9f", b"\xf0", b"\xf0\x28\x8c\xbc", b"\xf0\x90\x28\xbc", b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80",
           b"\xf5\x80\x80\x80", b"\xf8\x88\x80\x80\x80", b"a\xe3\x81b", b"\xe3\x81\x82\xe3\x81",
           b"\xf0\x9f\x98\x80\xf0\x9f\x98", b"ok \xffend", b"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41"]
SUBJECTS = [ENGLISH, LONG_S, NUMBERS, CODE, SPACES, INVISIBLE, EMOJI, MARKS, THAI, JAPANESE, CHINESE, HINDI, ARABIC,
            KOREAN, OTHER, SPECIALS, NEARLY_SPECIAL, CHAT]


def scripts():
    """Assigned characters by block of 128, so that a random string stays within a few scripts."""
    blocks = {}
    for c in list(range(0x20, 0xD800)) + list(range(0xE000, 0x20000)):
        if unicodedata.category(chr(c)) not in ("Cn", "Co", "Cs"):
            blocks.setdefault(c >> 7, []).append(chr(c))
    return list(blocks.values())


def strings(rng):
    yield ""
    for subject in SUBJECTS:
        yield from subject
    yield from INVALID
    for first in SPECIALS:
        for second in SPECIALS:
            yield first + second
    for form in ("NFC", "NFD"):
        for subject in (MARKS, THAI, JAPANESE, HINDI, ARABIC, KOREAN, OTHER, ENGLISH):
            yield from (unicodedata.normalize(form, s) for s in subject)
    for n in (100, 700):
        yield " " * n + "x"
        yield "\n" * n
        yield "a" * n
        yield "ab" * n
        yield "\u0301\u0323" * (n // 4)
        yield "=" * n
        yield "7" * (n // 4)
    blocks = scripts()
    joints = ["", "", "", " ", " ", "\n", "  ", "\t", "\r\n", "'", ".", "-"]
    words = ["a", "the", "7", ".", "é", "日", ""]
    endings = ["s", "t", "re", "ve", "m", "ll", "d", "ſ", "x"]
    marks = "\u0301\u0323\u0302\u0327\u0345\u093c\u3099\u11a8\u1161\u0653"
    tight = [SPECIALS, NEARLY_SPECIAL, ["a", " ", "\n", "é", "e\u0301", "7"]]

    def times(low, high, make):
        return "".join(make() for _ in range(rng.randint(low, high)))

    def contraction():
        ending = "".join(rng.choice((c, c.upper())) for c in rng.choice(endings))
        return rng.choice("Iiwexyé7") + rng.choice("''’") + ending + rng.choice(("", " ", "a", "1", "!"))

    while True:
        kind = rng.random()
        if kind < 0.30:  # one or two subjects
            subjects = rng.sample(SUBJECTS, rng.choice((1, 2)))
            yield times(2, 4, lambda: rng.choice(rng.choice(subjects)) + rng.choice(joints))
        elif kind < 0.50:  # all subjects
            yield times(2, 3, lambda: rng.choice(rng.choice(SUBJECTS)) + rng.choice(joints))
        elif kind < 0.60:  # whitespace between short words
            yield times(2, 8, lambda: rng.choice(words) + rng.choice(SPACES))
        elif kind < 0.66:
            yield times(4, 4, contraction)
        elif kind < 0.76:  # random characters of few scripts
            few = rng.sample(blocks, 3)
            yield times(3, 20, lambda: rng.choice(rng.choice(few)))
        elif kind < 0.82:  # random ASCII
            yield times(3, 30, lambda: chr(rng.randint(9, 127)))
        elif kind < 0.88:  # marks in any order
            yield times(5, 5, lambda: rng.choice("aeoqक가か ") + times(0, 3, lambda: rng.choice(marks)))
        elif kind < 0.94:  # bytes cut and changed
            data = bytearray(times(2, 2, lambda: rng.choice(rng.choice(SUBJECTS))).encode())
            for _ in range(rng.randint(1, 3)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            yield bytes(data[rng.randrange(3):len(data) - rng.randrange(3)])
        elif kind < 0.97:
            yield bytes(rng.randrange(256) for _ in range(rng.randint(1, 12)))
        else:  # specials and text without a gap
            yield times(2, 6, lambda: rng.choice(rng.choice(tight)))


def make_tokenizers(vocabulary):
    source = json.loads(vocabulary)

    def build(change):
        tokenizer = json.loads(vocabulary)
        change(tokenizer)
        return Tokenizer.from_str(json.dumps(tokenizer, ensure_ascii=False))

    def nfc(t):
        t["normalizer"] = {"type": "NFC"}

    def qwen2(t):
        nfc(t)
        t["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] = QWEN2

    def smollm(t):
        t["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
            {"type": "Digits", "individual_digits": True},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}]}

    def plain(t):
        nfc(t)
        t["added_tokens"] = [a for a in t["added_tokens"] if a["content"] in USER_DEFINED]

    assert source["normalizer"] is None
    return {"qwen35": build(nfc), "qwen2": build(qwen2), "smollm": build(smollm), "raw": build(lambda t: None),
            "plain": build(plain)}


def piece_bytes(tokenizer, text):
    pieces = tokenizer.pre_tokenizer.pre_tokenize_str(text)
    lengths = [len(text[begin:end].encode()) for _, (begin, end) in pieces]
    assert sum(lengths) == len(text.encode())
    return lengths


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--vocabulary", type=pathlib.Path)
    arguments = parser.parse_args()
    vocabulary_path = HERE / "pebble_tokenizer.json"
    if arguments.vocabulary:
        compact = json.dumps(json.loads(arguments.vocabulary.read_text()), ensure_ascii=False, separators=(",", ":"))
        vocabulary_path.write_text(compact)
    tokenizers = make_tokenizers(vocabulary_path.read_text())

    nfc = normalizers.NFC()
    seen, lines = set(), []
    for item in strings(random.Random(20261129)):
        if item in seen:
            continue
        seen.add(item)
        text = item.decode("utf-8", "replace") if isinstance(item, bytes) else item
        # HF's normalizer knows an older Unicode than the segmentation: leave out what only a newer one reorders.
        if nfc.normalize_str(text) != unicodedata.normalize("NFC", text):
            continue
        is_text = not isinstance(item, bytes) or text.encode() == item
        line = {"text": text} if is_text else {"base64": base64.b64encode(item).decode()}
        ids = {name: t.encode(text, add_special_tokens=False).ids for name, t in tokenizers.items()}
        line["qwen35"] = ids["qwen35"]
        line |= {name: ids[name] for name in ids if ids[name] != ids["qwen35"]}
        cuts = [piece_bytes(tokenizers[name], text) for name in ("qwen35", "qwen2", "smollm")]
        line["cuts"] = cuts[0] if cuts[0] == cuts[1] == cuts[2] else cuts
        lines.append(json.dumps(line, ensure_ascii=False, separators=(",", ":")))
        if len(lines) == N_STRINGS:
            break
    (HERE / "parity.jsonl").write_text("\n".join(lines) + "\n")
    print(len(lines), "strings,", sum(len(l.encode()) for l in lines), "bytes")


if __name__ == "__main__":
    main()
