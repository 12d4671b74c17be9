"""A small text to train tokenizers on: written for this purpose, multiplied by templates with seeded numbers and words."""

import random

PROSE = r"""
Let me think about this step by step. First, I need to find how many apples Maria has left after she gives some to her
brother. She starts with 24 apples, gives away a third of them, and then buys 7 more. So 24 / 3 = 8, and 24 - 8 = 16, and
16 + 7 = 23. Wait, that is not quite what the question asks. Let me read it again. Hmm, the problem says "a third of what
is left", so I should subtract first. Okay, let's check: if x is the number of apples, then x - 5 = 19, which means x = 24.
Therefore the answer is 24. Actually, let me double-check by plugging the value back into the equation. Yes, it works!
Alternatively, we could count the pairs directly; there're exactly n(n-1)/2 of them, and I've already shown that n isn't
even. They'll need to be ordered, we'd lose a factor of two, and it's what I'm after. Don't forget the empty set, shan't we?

The residual stream is read by every layer and written by every layer. A key is rotated by an angle that grows with its
position, and a query that is rotated in the same way meets it at the difference of the two. Attention weights are
probabilities: they are positive, they sum to one, and most of them are nearly zero. When memory is short, something must
be forgotten, and the question of this work is which tokens can be forgotten without changing the answer.

We have \( \frac{a}{b} = \frac{c}{d} \) whenever \( ad = bc \). So $$\sum_{k=1}^{n} k^2 = \frac{n(n+1)(2n+1)}{6}$$ and
\[ \int_0^1 x^{2}\,dx = \frac{1}{3}, \qquad \sqrt{2} \approx 1.41421356, \qquad \binom{n}{k} = \binom{n}{n-k}. \]
Hence the final answer is \boxed{\frac{17}{42}}. The angle $\theta = 30^\circ$, so $\cos\theta = \frac{\sqrt{3}}{2}$ and
$\left( x + \frac{1}{2} \right)^2 \le \pi$. Thus $\boxed{42}$, $\boxed{(3, -5)}$ and $\boxed{\text{no solution}}$.

fn forward(&self, ids: &[u32], cache: &mut RowCache) -> Result<Tensor> {
    let mut x = self.embed(ids)?;
    for (layer, block) in self.blocks.iter().enumerate() {
        x = block.forward(&x, cache.layer_mut(layer))?;
    }
    Ok(self.norm.forward(&x)?)
}
def gcd(a, b):
    while b != 0:
        a, b = b, a % b
    return abs(a)
print([gcd(i, 12) for i in range(1, 13)])   # 1 2 3 4 1 6 1 4 3 2 1 12
{"question": "How many?", "answer": 42, "steps": ["add", "divide"], "ok": true, "note": null}
<html lang="en"><body class="page"><p>Tom &amp; Ann</p></body></html>
SELECT trace_id, count(*) AS n FROM labels WHERE flipped = 1 GROUP BY trace_id ORDER BY n DESC;

Zuerst rechnen wir die Summe aus, danach prüfen wir das Ergebnis. Die Größe der Schlüssel ist für jede Schicht gleich.
Äpfel, Öl und Übungen: der Fuß ist größer als die Straße. Wie viele Möglichkeiten gibt es, drei Bücher zu ordnen?
Commençons par écrire l'équation. La réponse n'est pas évidente : il faut d'abord vérifier que l'élève a bien compté.
Où êtes-vous allés hier ? À l'école, où le professeur a expliqué la leçon de mathématiques.
Primero calculamos la suma. ¿Cuántas manzanas quedan? La señora compró doce más, así que la respuesta es treinta y seis.
Najpierw obliczymy sumę. Ile jabłek zostało? Odpowiedź brzmi: dwadzieścia cztery. Gęś, żółw, źrebię i ćma.
Сначала найдём сумму, затем проверим ответ. Сколько яблок осталось у Маши? Ответ: двадцать четыре. Это правильно.
Πρώτα βρίσκουμε το άθροισμα. Η απάντηση είναι σαράντα δύο. Έστω ότι το α είναι μεγαλύτερο από το β.
首先计算苹果的数量，然后检查答案。问题是：小明有多少个苹果？所以答案是四十二。我们再想一想，这个答案是对的。
まず、りんごの数を数えます。次に、答えを確かめます。だから、答えは四十二です。もう一度考えてみましょう。
먼저 사과의 개수를 세어 봅시다. 그러면 답은 마흔둘입니다. 다시 한번 확인해 봅시다.
أولا نحسب عدد التفاحات ثم نتحقق من الجواب. كم تفاحة بقيت؟ إذن الجواب هو اثنان وأربعون.
תחילה נחשב את מספר התפוחים ואחר כך נבדוק את התשובה. כמה תפוחים נשארו? התשובה היא ארבעים ושתיים.
पहले हम सेबों की संख्या गिनते हैं। फिर हम उत्तर जाँचते हैं। इसलिए उत्तर बयालीस है।
ก่อนอื่นให้นับจำนวนแอปเปิ้ล แล้วตรวจคำตอบ คำตอบคือสี่สิบสอง
😀 😂 🚀 ❤️ 👍🏽 👩‍👩‍👧 🇩🇪 ✓ ✗ → ⇒ ≤ ≥ ≠ ≈ ∞ ∑ ∫ √ π ² ³ ½ € £ ° — – … « » „ “ ” ‘ ’
"""

NAMES = "Maria Tom Ann Jamal Priya Wei Olga Hassan Lucia Ken Fatima Peter Nora Sam Leila Bruno Ines Yuki Omar Clara".split()
THINGS = """apples pencils marbles stickers books coins tickets cookies flowers stones candles bottles cards ribbons oranges
bricks balloons buttons muffins photographs letters magazines kilometers minutes dollars students passengers chickens trees
windows sandwiches shells triangles numbers divisors integers vectors polynomials probabilities""".split()
VERBS = "buys sells finds loses gives collects borrows returns counts shares divides keeps throws packs paints plants".split()
PLACES = """market school library garden station harbor kitchen museum factory village island bridge mountain bakery theatre
hospital workshop playground warehouse restaurant""".split()
LINKS = """Wait, |So, |Therefore, |Hmm, |Okay, |Now, |However, |Then |Next, |Finally, |Alternatively, |First, |But |Because of this, |
Let me check: |In other words, |Similarly, |Suppose that |Notice that |We know that """.replace("\n", "").split("|")
WORDS = """absolute addition algebra ancient angle answer apparent approach argument assume average balance because beginning
between bottom boundary calculate careful certain change circle clearly combine common compare complete compute conclude condition
consider constant contain correct counterexample cube decimal decrease definition degree denominator depend derivative determine
diagonal diameter difference digit dimension direction distance distinct divide double edge eighth either element eliminate enough
equal equation equivalent estimate evaluate even event every exactly example except expand expect explain expression factor false
figure find following formula fraction function general geometric graph greater half height hexagon hundred hypothesis identity
imagine important inequality infinite initial inside instead integral intersect interval inverse isolate large length likely limit
linear logarithm maximum measure median method middle minimum missing modulo moreover multiply natural negative nothing numerator
observe obtain odd opposite order ordinary origin outcome outside overlap parallel parity partial particular pattern perimeter
permutation perpendicular plane point positive possible power previous prime principle probably problem product proof property
prove quadratic quantity quarter question quotient radius random ratio rational reason rectangle recursive reduce reflect region
remainder remember repeat replace represent result reverse right root rotate round sample satisfy second segment sequence series
several shape side similar simple simplify single slope smallest solution solve special sphere square start statement straight
strictly substitute subtract sufficient suppose surface symmetric table tangent temperature term theorem thousand together total
transform triangle true twice typical uniform unique unknown upper usually value variable verify vertex vertical volume weight whole
width without wrong yesterday zero""".split()


def corpus(seed):
    """About 200 kB of lines."""
    rng = random.Random(seed)
    pick = rng.choice
    lines = PROSE.split("\n") * 3
    for _ in range(1500):
        a, b = rng.randint(2, 99), rng.randint(2, 2000)
        lines.append(pick([
            f"{pick(NAMES)} {pick(VERBS)} {a} {pick(THINGS)} at the {pick(PLACES)}. How many {pick(THINGS)} are there in total?",
            f"{pick(LINKS)}{a} * {b} = {a * b}, and the {pick(WORDS)} {pick(WORDS)} is {b}.",
            f"{pick(LINKS)}the {pick(WORDS)} of the {pick(WORDS)} must be {pick(WORDS)}, so we {pick(WORDS)} it.",
            f"$\\frac{{{a}}}{{{b}}}$ is the {pick(WORDS)}; {pick(NAMES)}'s {pick(WORDS)} isn't {pick(WORDS)}.",
            f"    let {pick(WORDS)} = {pick(WORDS)}({a}, {b});  // {pick(WORDS)} {pick(THINGS)}",
            f"{pick(WORDS).capitalize()} {pick(WORDS)}, {pick(WORDS)} and {pick(WORDS)}: {a + b} {pick(THINGS)}.",
        ]))
    return lines
