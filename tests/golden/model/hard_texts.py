"""Texts that break tokenizers, shared by the Transformers and the llama.cpp goldens."""

TEXTS = [
    "",
    " ",
    "Hello",
    " Hello, world!",
    "  two leading spaces and two trailing  ",
    "a  b   c    d     e      f",
    "\ttab\tseparated\t\tvalues\t",
    "line one\nline two\n\nline four\n\n\n",
    "CRLF line\r\nnext line\r\n\r\nlast\r",
    " \n \n  \n\t\n x",
    "trailing newline and space \n ",
    "I'm sure they're right, we've seen it'll work; he'd say it isn't John's. SHE'S, WE'LL, DON'T",
    "the lone ' apostrophe, rock 'n' roll, '90s, ''quoted'', ’curly’ it’s",
    "1 12 123 1234 12345 123456 1234567 12345678901234567890",
    "3.14159, 1,000,000.50, 1e-10, 0x1F600, 2^10=1024, 50%, $42.00, №7, ½, x², ⅧⅨ, ٣٤٥, ४५६",
    "a1b22c333d4444 v1.2.3-rc4 2024-01-31T23:59:60Z",
    r"$$\frac{-b \pm \sqrt{b^2-4ac}}{2a}$$ and \(\alpha_{i,j}\) so \boxed{\frac{17}{42}}.",
    r"\begin{align*} f(x) &= \sum_{n=0}^{\infty} \frac{x^n}{n!} \\ &\le e^{|x|} \end{align*}",
    "fn main() {\n    let x: Vec<u32> = (0..10).map(|i| i * i).collect();\n\tprintln!(\"{x:?}\");\n}\n",
    "def f(x):\n        return {'a': [1, 2, 3], \"b\": None}  # eight spaces\n",
    "if (a!=b && c<=d || !e) { x+=1; y->z; p::q; /* ... */ } // ===>>>",
    "https://example.org/path?q=1&r=%20#frag user.name+tag@example.org C:\\dir\\file.txt",
    "café naïve Ångström – “quoted” … ‘single’ «guillemets» fiancée",
    "cafe\u0301 nai\u0308ve A\u030angstro\u0308m e\u0301\u0302\u0303 q\u0307\u0323 \u1e69 s\u0323\u0307",
    "\u212b \u2126 \ufb01ne \u1e9b\u0323 \u00bd \uac00 \u1100\u1161 \u0958",
    "😀😂🚀 ❤️ 👍🏽 👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇫🇷 1️⃣",
    "首先计算苹果的数量，然后检查答案。小明有42个苹果！",
    "まず、りんごの数を数えます。カタカナ ﾊﾝｶｸ ｶﾞ が が 한국어 텍스트 각",
    "أولا نحسب عدد التفاحات، ثم نتحقق. שלום עולם! \u202bmixed RTL\u202c and LTR",
    "हम सेबों की संख्या गिनते हैं। क्ष्य ก่อนอื่น ให้ນັບ",
    "Привет, мир! Ёжик и Щука. Ещё раз: Йод й",
    "zero\u200bwidth\u200djoiner\u200cnon\ufeffbom soft\u00adhyphen nb\u00a0space em\u2003space \u3000ideographic\u2028line\u2029para\u0085nel",
    "control \x00\x01\x1b[31m\x7f bytes \x0b\x0c end",
    "𝒜𝓁𝑔𝑒𝒷𝓇𝒶 𝟙𝟚𝟛 𐍈 𠜎𠜱 \U0010ffff \ue000 \ufffd",
    "pneumonoultramicroscopicsilicovolcanoconiosis" * 6,
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!----------------________________",
    "MiXeD CaSe camelCase snake_case SCREAMING_CASE kebab-case Title Case ıİ ß ẞ ΣΑΣ ς",
    "<think>\nOkay, so 2+2=4.\n</think>\n\nThe answer is \\boxed{4}.",
    "a<think>b</think>c <think> d </think> e<think></think><think",
    "Wait, wait. Hmm... Let me re-check: 24 - 8 = 16 => 16 + 7 = 23?! Yes: 23 ✓",
    "A counterfactual epiphany, the counterfactual  epiphany;counterfactual",
    "| a | b |\n|---|---|\n| 1 | 2 |\n\n- item\n  - nested\n\n> quote **bold** _it_ `code`\n",
]

# added to TEXTS for a tokenizer with ChatML markup
CHATML_TEXTS = [
    "<|im_start|>user\nHow many?<|im_end|>\n<|im_start|>assistant\n",
    "x<|im_end|>y <|im_end|> z<|endoftext|><|endoftext|>\n<|im_start|>",
    "<|im_start|> <|im_start |> <|im_end| <|endoftext|>a",
]

# and for one with Llama-3 and R1 markup
R1_TEXTS = [
    "<|begin_of_text|>already begun",
    "<｜User｜>How many?<｜Assistant｜><think>\nOne.\n</think>\n\nOne.<｜end▁of▁sentence｜>",
    " <｜User｜> spaced <｜end▁of▁sentence｜> <｜User ｜> <|User|>",
]
