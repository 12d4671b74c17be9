"""Writes chat.json: what Jinja2, set up as Transformers sets it up, renders of small templates.

Run: python make_chat_goldens.py > chat.json   (jinja2 3.1)
An entry is [template, text]; text is null where Jinja2 refuses the template.
"""
import json
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

def raise_exception(message):
    raise ValueError(message)

def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
env.filters['tojson'] = tojson
env.globals['raise_exception'] = raise_exception
CONTEXT = json.load(open('context.json'))

E = r"""
none is iterable
undef is iterable
'x' is iterable
3 is iterable
[] is iterable
{} is iterable
'x' is sequence
[] is sequence
{} is sequence
none is sequence
undef is sequence
3 is sequence
none is string
undef is string
undef is mapping
none is mapping
{} is mapping
[] is mapping
undef is none
none is none
undef is defined
undef is undefined
true is boolean
1 is boolean
true is number
1 is number
1.5 is number
true is integer
1 is integer
1.0 is float
1.5 is float
1 is odd
2 is even
9 is divisibleby 3
9 is divisibleby(2)
'a' is lower
'A' is upper
'A' is in ['A']
1 is eq 1
1 is equalto 1
1 is ne 2
2 is gt 1
2 is greaterthan 1
1 is lt 2
1 is sameas 1
none is sameas none
true is true
1 is true
false is false
0 is false
raise_exception is callable
d is callable
d.get is callable
undef is callable
'upper' is filter
'nonsense' is filter
'odd' is test
'x' is escaped
undef | length
none | length
3 | length
'abc' | length
'abc' | count
d | length
d
d | list
d.items() | list
d.keys() | list
d.values() | list
d.get('b')
d.get('zz')
d.get('zz', 7)
d['b']
d.zz
d.zz is defined
undef.x
d.zz.y
items
items | string
items ~ ''
[true, none, 1.5, 'a', "it's", 'q"', 'n\n\t\\']
[1e16, 1e15, 1e-5, 0.0001, 100.0, 1.0, 0.1, 123456789.123]
1e16
1e22
1.0
-0.0
2.5e-7
{'a': true, 'b': none, 'c': 1.0, 'd': [], 'e': {}}
{1: 2}
{'x': 'é'}
['\x00', 'é', '\u200b', '\x7f']
(1, 2)
(1,)
()
[(1, 'a'), (2, 'b')]
[undef]
[[1, [2, {'a': 3}]]]
true
false
none
undef
true ~ 'x'
none ~ 'x'
undef ~ 'x'
1.0 ~ 'x'
[1] ~ [2]
1 ~ 2
1 ~ 2 + 3
'a' ~ 2 * 3
'a' ~ 'b' ~ 'c'
'a' ~ undef is defined
'a' + 'b'
'a' + 1
'a' + none
'a' + undef
1 + true
[1] + [2]
'ab' * 3
[0] * 3
3 * 'ab'
7 / 2
6 / 2
7 // 2
-7 // 2
7 // -2
7.5 // 2
-7 % 3
7 % -3
7.5 % 2
2 ** 10
2 ** -1
2 ** 0.5
-2 ** 2
10 % 3 * 2
1 / 0
1 // 0
1 % 0
1 + 2 * 3 - 4
(1 + 2) * 3
10 - 3 - 2
-3 | abs
'%s and %d' % ('a', 3)
'%s' % 'x'
'%s' % [1, 2]
'%s' % true
'%5.2f|%-5s|%05d|%x|%%|%r' % (3.14159, 'ab', 42, 255, 'q')
'%(a)s' % {'a': 1}
'%s %s' % ('a',)
'%d' % 'x'
'%+d' % 3
'%e' % 12345.678
'%g' % 0.0001
'%c' % 'x'
'%3s' % 'é'
'a' ~ '%s' % 3
fmt % 'x'
'%s-%s' | format('a', 1)
'%(a)s' | format(a=1)
'{} {}'.format('a', 1)
'{0} {1} {0}'.format('a', 1)
'{a}'.format(a=1)
'{:>5}|{:<5}|{:^5}|{:05d}|{:.2f}|{:,}'.format('a', 'b', 'c', 42, 3.14159, 1234567)
'{!r}'.format('a')
'{}'.format(true)
'{}'.format([1, 'a'])
'{{}}'.format()
'a b  c'.split()
'a b  c'.split(' ')
'a,b,c'.split(',', 1)
'a,b,c'.rsplit(',', 1)
'a,b,c'.rsplit(',')
' a b c '.rsplit()
' a b c '.rsplit(none, 1)
' a b c '.split(none, 1)
'a,b'.split('')
''.split()
''.split(',')
'a-b-c'.partition('-')
'a-b-c'.rpartition('-')
'abc'.partition('-')
'abc'.rpartition('-')
'abc'.removeprefix('a')
'abc'.removesuffix('c')
'abc'.startswith('a')
'abc'.startswith(('x', 'a'))
'abc'.startswith('b', 1)
'abc'.endswith('c')
'abc'.endswith(('x', 'c'))
'abc'.find('c')
'abc'.find('z')
'éabc'.find('c')
'abcabc'.rfind('c')
'abcabc'.find('a', 1)
'abc'.index('c')
'abc'.index('z')
'abc'.rindex('c')
'abcabc'.count('b')
'abc'.count('')
'abc'.upper()
'ABC'.lower()
'ABC'.casefold()
'aBc'.swapcase()
'hello wORLD'.capitalize()
"they're bill's".title()
'abc'.center(8)
'abc'.center(8, '*')
'abcd'.center(9, '*')
'abc'.center(2)
'abc'.ljust(5, '.')
'abc'.rjust(5, '.')
'42'.zfill(5)
'-42'.zfill(5)
'a\tb'.expandtabs(4)
' a '.strip()
'xxaxx'.strip('x')
'xxaxx'.lstrip('x')
'xxaxx'.rstrip('x')
'aXbX'.replace('X', '-')
'aXbX'.replace('X', '-', 1)
'abc'.replace('', '-')
'-'.join(['a', 'b'])
'-'.join([1, 2])
'a\nb\r\nc'.splitlines()
'a\nb\n'.splitlines(true)
'12'.isdigit()
''.isdigit()
'ab'.isalpha()
''.isalpha()
'a1'.isalnum()
' '.isspace()
''.isspace()
'ab'.islower()
'a1'.islower()
'12'.islower()
'AB'.isupper()
'A1'.isupper()
'Ab'.istitle()
'12'.isdecimal()
'12'.isnumeric()
'½'.isnumeric()
'½'.isdigit()
'ab'.isidentifier()
'ab'.isascii()
'ab'.isprintable()
'ab'.nonsense()
'a'.encode()
[1, 2, 1].count(1)
[1, 2].index(2)
[1].append(2)
d.update({'x': 1})
d.copy()
d.pop('b')
'hello world' | wordcount
'hello world' | title
"it's a foo-bar" | title
'hello WORLD' | capitalize
'abc' | upper
'ABC' | lower
true | upper
none | upper
undef | upper
undef | lower
undef | trim
none | trim
undef | title
undef | capitalize
undef | list
none | list
'abc' | list
d | items | list
undef | items | list
undef | join(',')
undef | first
undef | last
undef | replace('a', 'b')
undef | string
undef | tojson
undef | default('x')
none | default('x')
none | default('x', true)
'' | default('x', true)
'' | d('x', boolean=true)
undef | int
undef | float
undef | sum
undef | sort
undef | reverse | list
undef | unique | list
undef | map('upper') | list
undef | select | list
undef | indent
undef | safe
undef | escape
undef | wordcount
undef | abs
'  a ' | trim
'xxaxx' | trim('x')
'hello world this is long' | truncate(10)
'hello world this is long' | truncate(10, true)
'hello world this is long' | truncate(10, true, '..')
'hello world this is long' | truncate(20, leeway=0)
'hello world this is long' | truncate(12, false, '!', 0)
'short' | truncate(3)
'abc' | center(9)
'abc' | center
'hello world this is long' | wordwrap(10)
'a long-word here' | wordwrap(6)
'<b>&"\'' | escape
'<b>' | e
'<b>hi</b> <i>x</i>' | striptags
'<b>' | forceescape
'<b>' | safe
123456789 | filesizeformat
1000 | filesizeformat
1 | filesizeformat
1048576 | filesizeformat(true)
'a b&c/d' | urlencode
{'a': 1, 'b': 'x y'} | urlencode
'a\nb' | indent
'a\nb' | indent(2, true)
'a\n\nb' | indent(2)
'a\n\nb' | indent(2, blank=true)
'a\nb' | indent('> ')
'3' | int
'3.7' | int
'x' | int
'x' | int(5)
'ff' | int(base=16)
'0x1f' | int(0, 16)
3.9 | int
true | int
none | int
'3.5' | float
'x' | float
'x' | float(1.5)
3 | float
2.5 | round
3.5 | round
2.567 | round(2)
2.567 | round(1, 'floor')
2.51 | round(1, 'ceil')
3 | round
42.55 | round | int
[3, 1, 2] | sort
[3, 1, 2] | sort(reverse=true)
['b', 'A', 'c'] | sort
['b', 'A', 'c'] | sort(case_sensitive=true)
[{'a': 2}, {'a': 1}] | sort(attribute='a')
['b', 'A', 'a', 'B'] | unique | list
[1, 2, 2] | unique | list
[1, 2, 3] | sum
[{'a': 2}, {'a': 1}] | sum(attribute='a')
[1, 2] | sum(start=10)
[3, 1, 2] | min
[3, 1, 2] | max
[] | max
['b', 'A'] | min
[1, 2, 3] | first
[1, 2, 3] | last
[] | first
'abc' | first
'abc' | last
[1, 2, 3] | reverse | list
'abc' | reverse
[1, 2, 3, 4, 5] | batch(2) | list
[1, 2, 3] | batch(2, 0) | list
[1, 2, 3, 4, 5] | slice(2) | list
[1, 2, 3, 4, 5] | slice(2, 0) | list
d | dictsort
{'b': 1, 'A': 2} | dictsort
{'b': 1, 'A': 2} | dictsort(true)
{'b': 1, 'A': 2} | dictsort(by='value')
{'b': 1, 'A': 2} | dictsort(reverse=true)
[1, true, none, 'x'] | join(', ')
[1, 2] | join
messages | join(', ', attribute='role')
messages | map(attribute='role') | list
messages | map(attribute='zz', default='q') | list
messages | selectattr('role', 'equalto', 'user') | list | length
messages | selectattr('role', 'eq', 'user') | map(attribute='content') | first
messages | rejectattr('role', 'eq', 'user') | list
messages | selectattr('zz') | list
messages | selectattr('zz', 'defined') | list
messages | groupby('role')
messages | groupby('role') | map(attribute='grouper') | list
messages | groupby('role') | map('first') | list
[1, 2, 3] | select('odd') | list
[1, 2, 3] | reject('odd') | list
['a', 'b'] | map('upper') | list
['a', 'b'] | map('upper') | join
['a'] | map('replace', 'a', 'b') | list
'aaa' | replace('a', 'b', 2)
1 | replace('1', 'b')
1.0 | string
true | string
[1, 'a'] | string
none | string
'abc' | attr('upper') is callable
d | attr('b')
'a' | pprint
[1, 'a'] | pprint
{'b': 1, 'a': 2} | pprint
{'b': 1, 'a': 2} | xmlattr
d | tojson
d | tojson(indent=2)
[1.0, 1e16, 'é', '\x7f'] | tojson
{1: 2, none: 3, true: 4} | tojson
(1, 2) | tojson
'<>&' | tojson
1.0 | tojson
'abc' | nonsense
range(5) | list
range(1, 5, 2) | list
range(5, 0, -2) | list
range(3)
range(1000000)
dict(a=1, b='x')
namespace(a=1).a
'abc'[0]
'abc'[-1]
'abc'[1:]
'abc'[::-1]
'éab'[1]
[1, 2, 3][::-1]
[1, 2, 3][-2:]
[1, 2][5]
'abc'[9]
d['zz']
1 == 1.0
1 == true
'1' == 1
none == undef
undef == undef
'a' in 'abc'
'a' in ['a']
'b' in d
'zz' not in d
'a' in undef
'a' in none
1 in [true]
1 < 2 < 3
'a' < 'b'
'a' < 1
none < 1
not none
not undef
undef and 1
undef or 1
'' or 'x'
0 or none
1 and 'x'
'x' if false
'x' if false else 'y'
1 if undef else 2
'a' 'b'
1_000
0x10
'a\'b'
"a\"b"
'\u00e9\x41\n'
'\q'
loop
self
messages[0].role
messages[0]['content'][:4]
messages[-1]['role']
messages[0].items() | list
messages[0].keys() | list
messages[0] == messages[0]
d.items
d.a.b
messages | length > 1 and messages[1].role == 'assistant'
1 is not none
none is not none
not none is none
1.5 | string | length
3 | string * 2
lipsum() | length > 0
cycler is callable
joiner is callable
[1,2,3] | random is number
10 | divisibleby
3.0 == 3
2 ** 3 ** 2
100000000000000000000
9223372036854775807 + 1
9999999999 * 9999999999
1e400
- 3
+3
not 1 == 2
'a' ~ 1 == 'a1'
'x' ~ (1, 2)
{'a': (1, 2)}
{'items': 5}['items']
{'items': 5}.items() | list
{'items': 5}.items is callable
{'get': 5}.get
'İ'.lower()
'ß'.upper()
'a b' | urlencode
'ﬁ'.title()
'x'.__class__
d.__class__
''.join(['a'] * 3)
'a'.join('xyz')
['a', 'b'] | join(undef)
'abc' | wordwrap(0)
[3, 'a'] | sort
{} | first
d | first
d | last
d | reverse | list
d | map('upper') | list
d.items() | map('first') | list
d.items() | length
d.values() | sum
"a" is in "abc"
'abc' is ne 'x' and 1
messages is sequence and messages is not string and messages is not mapping
content is string
"tool" in messages[0]
messages[0].tool_calls is defined and messages[0].tool_calls
messages[0].tool_calls | length
messages[0].get('tool_calls', [])
messages[0]['tool_calls'] is not none
"\n\n" | trim ~ "x"
'</think>' in 'a</think>b'
'a</think>b'.split('</think>')[-1].lstrip('\n')
'a</think>b'.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n')
'%02d:%s' % (5, none)
'%s' % none
'%s' % d
'%s' % (d,)
'%s%%' % 5
'%.3s' % 'abcdef'
'%*d' % (5, 3)
'%i %u' % (1, 2)
'%o %X %#x' % (8, 255, 255)
'%a' % 'é'
'no args' % ()
'no args' % 1
""".strip('\n').split('\n')

T = [
    "{% for m in messages %}\n  {% if m.role == 'user' %}\n  {{ m.content }}\n  {% endif %}\n{% endfor %}\nend\n",
    "{% if tools is iterable and tools | length > 0 %}tools{% endif %}{% for m in messages %}{{ m.role + ': ' + m.content + '\\n' }}{% endfor %}assistant:",
    "{{ messages | map(attribute='role') | list }} {% for m in messages %}{{ m.content }}{% endfor %}\nassistant:",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{% set _ = c.reset() %}{{ c.next() }}",
    "{% set j = joiner(', ') %}{% for i in [1, 2, 3] %}{{ j() }}{{ i }}{% endfor %}",
    "{% set j = joiner() %}{{ j() }}{{ j() }}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in d | dictsort %}{{ k }}={{ v }};{% endfor %}",
    "{% for i in d.items() %}{{ i }}{% endfor %}",
    "{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% for i in [1, 2, 3] %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.cycle('x', 'y') }}{{ loop.depth }};{% endfor %}",
    "{% for i in [1, 2, 3] %}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.changed(i) }}{% endfor %}",
    "{% for i in [] %}x{% else %}none{% endfor %}",
    "{% for i in undef %}x{% else %}none{% endfor %}",
    "{% for i in none %}x{% endfor %}",
    "{% for i in 3 %}x{% endfor %}",
    "{% for c in 'abc' %}{{ c }}.{% endfor %}",
    "{% for i in [1, 2, 3] if i % 2 %}{{ i }}{% endfor %}",
    "{% for i in [1, [2, [3]]] recursive %}{% if i is iterable %}({{ loop(i) }}){% else %}{{ i }}{% endif %}{% endfor %}",
    "{% macro f(a, b='x', c=none) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(1) }}{{ f(1, c=2) }}{{ f(a=true, b=[1]) }}",
    "{% macro f() %}[{{ caller() }}]{% endmacro %}{% call f() %}x{% endcall %}",
    "{% set ns = namespace(found=false, n=[]) %}{% for m in messages %}{% set ns.found = true %}{% set ns.n = ns.n + [m.role] %}{% endfor %}{{ ns.found }}{{ ns.n }}",
    "{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{% endfor %}{{ x }}",
    "{% set x %}a{{ 1 }}{% endset %}{{ x }}{{ x | length }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}",
    "{% set t = 1, 2 %}{{ t }}",
    "{% for a, b in [(1, 2), [3, 4]] %}{{ a }}{{ b }}{% endfor %}",
    "{% for (a, b) in [(1, 2)] %}{{ a }}{{ b }}{% endfor %}",
    "{% filter upper %}abc{% endfilter %}",
    "{% with x = 3 %}{{ x }}{% endwith %}",
    "{% raw %}{{ x % y }}{% endraw %}",
    "{# a {{ comment }} #}x",
    "a {%- if true -%} b {%- endif -%} c",
    "{%+ if true %}x{% endif %}",
    "  {% if true %}\n  x\n  {% endif %}\n",
    "{{- 'a' -}}  b",
    "line\n{{ 'x' }}\n",
    "x\n\n",
    "{% if undef %}a{% elif none %}b{% else %}c{% endif %}",
    "{{ raise_exception('no') }}",
    "{% if messages[0].role != 'user' %}{{ raise_exception('no') }}{% endif %}ok",
    "{% if strftime_now is defined %}{{ strftime_now('%Y') }}{% else %}no date{% endif %}",
    "{{ '{{ 1 % 2 }}' }}{{ \"%}\" }}",
    "{% set x = '%}' %}{{ x }}",
    "{{ {'a': {'b': 1}} }}",
    "{{ {'a': {'b': 1}}.a.b }}",
    "{% do x %}",
    "{% nonsense %}",
    "{% if true %}",
    "{{ }}",
    "{% for i in range(3) -%}\n {{ i }}\n{%- endfor %}",
    "{% set x = {'a': 1, **d} %}{{ x }}",
    "{% set x = dict(d, c=3) %}{{ x }}",
    "{{ f(*[1]) }}",
    "{% macro f(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ f(*[1, 2]) }}{{ f(**{'a': 3, 'b': 4}) }}",
    "{% block a %}x{% endblock %}",
    "{% for m in messages %}{{ '<|' ~ m['role'] ~ '|>' ~ m['content'] | trim ~ '\\n' }}{% endfor %}",
    "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('alternate') }}{% endif %}{{ m.content }}{% endfor %}",
    "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{{ add_generation_prompt }}",
    "{% set loop_messages = messages[1:] %}{{ loop_messages | length }}{% set content = 'x' if messages[0] is mapping else 'y' %}{{ content }}",
    "{%- set x = [1, 2][0] if true else 3 -%}\n{{ x }}",
    "{{ 'a' if 1 else 'b' ~ 'c' }}",
    "{{ x.y if x is defined else 'none' }}",
    "{{ [1, 2, 3] | map('string') | join('-') ~ '!' }}",
    "{% set x = 5 %}{{ x // 2 * 2 ~ '|' ~ x % 2 }}",
]
out = []
for source in ['{{ ' + e + ' }}' for e in E] + T:
    try: text = env.from_string(source).render(**CONTEXT)
    except Exception: text = None
    if text is not None and ' at 0x' in text or 'random' in source or 'lipsum' in source: continue
    out.append([source, text])
print('[\n' + ',\n'.join(json.dumps(entry, ensure_ascii=False) for entry in out) + '\n]')
