"""Tasks whose model copies text wrongly, or makes edits that depend on each other."""

import textwrap

from benchmarks.coding_tasks.steps import Answer, Change, Create, Files, Find, Look, MultiChange, Run, Task
from benchmarks.coding_tasks.tasks.writing import failing, hidden, passing, text

PRICES = text('''
    """Prices in cents."""


    def net(cents, rate):
        return cents * 100 // (100 + rate)


    def gross(cents, rate):
        return cents + cents * rate // 100
''')

QUEUE = text("""
    class Queue:
        def __init__(self):
            self.items = []

        def push(self, item, priority=0):
            if priority > 0:
                self.items.insert(0, item)
            else:
                self.items.append(item)

        def pop(self):
            return self.items.pop()
""")
_START = QUEUE.index("        if priority")
QUEUE_OLD = QUEUE[_START:]
QUEUE_NEW = """\
        if priority > 0:
            self.items.insert(self.urgent, item)
            self.urgent += 1
        else:
            self.items.append(item)

    def pop(self):
        self.urgent = max(0, self.urgent - 1)
        return self.items.pop(0)
"""
QUEUE_FIXED = QUEUE[:_START].replace("items = []", "items, self.urgent = [], 0") + QUEUE_NEW


def _flattened(method: str) -> str:
    """Return the lines from the body of a method to the end of the class, as a model that forgets the indentation."""
    body, _, rest = method.partition("\n    def ")
    return textwrap.dedent(body) + "\n" + textwrap.dedent(f"    def {rest}")


RETRY = text("""
    DEFAULTS = {"attempts": 1, "delay": 0.5, "factor": 1.0, "limit": 10.0}


    def delays(attempts, delay, factor, limit):
        return [min(limit, delay) for _ in range(attempts)]


    def describe(attempts):
        return "attempt"
""")

RENDER = text("""
    import re


    def expand(template, values):
        return re.sub(r"\\{(\\w+)\\}", lambda found: str(values[found[1]]), template)


    def money(amount):
        return expand("{amount}", {"amount": amount})


    def shell_words():
        return []
""")

MAKEFILE = "report:\n\t@echo building\n\twc -l src/*.txt > report.txt\n\nclean:\n\trm -f report.txt\n"
QUERY = text("""
    def parse_query(query):
        pairs = [part.split("=") for part in query.split("&")]
        return {key: value for key, value in pairs}
""")
QUERY_FIXED = text("""
    from urllib.parse import unquote


    def parse_query(query):
        pairs = [part.partition("=") for part in query.split("&")]
        return {unquote(key): unquote(value) for key, _, value in pairs}
""")
LEAP = text("""
    def days_in_month(year, month):
        if month == 2:
            return None
        if month in (4, 6, 9, 11):
            return None
        return None
""")

TASKS = (
    Task(
        name="two_modules",
        quirk="none: the model makes no mistake",
        prompt="Invoices must round half a cent up, in gross and in the invoice total.",
        files={
            "billing/__init__.py": "",
            "billing/prices.py": PRICES,
            "billing/invoice.py": text("""
                from billing.prices import gross


                def total(positions, rate):
                    return sum(cents for cents in positions) * (100 + rate) // 100
            """),
            "test_billing.py": hidden("from billing.prices import gross", "self.assertEqual(gross(105, 10), 116)"),
        },
        hidden=hidden(
            "from billing.invoice import total",
            "from billing.prices import gross",
            "self.assertEqual(gross(105, 10), 116)",
            "self.assertEqual(total([105, 105], 10), 232)",
        ),
        work=(
            failing(),
            Find(r"def (gross|total)", shows="prices.py"),
            Look("billing/prices.py", shows="return cents + cents * rate // 100"),
            Look("billing/invoice.py", shows="def total"),
            Change("billing/prices.py", "cents + cents * rate // 100", "cents + (cents * rate + 50) // 100"),
            Change(
                "billing/invoice.py",
                "sum(cents for cents in positions) * (100 + rate) // 100",
                "sum(gross(cents, rate) for cents in positions)",
            ),
            passing(),
        ),
    ),
    Task(
        name="trailing_spaces_in_file",
        quirk="lines of the file end with spaces, which the model never writes",
        prompt="merge() must keep the keys of both dictionaries; nested dictionaries are merged, too.",
        files={
            "settings.py": (
                "def merge(base, more):   \n    result = dict(base) \n    for key in base:  \n"
                "        result[key] = more.get(key, base[key])  \n    return result \n"
            ),
            "test_settings.py": hidden("from settings import merge", "self.assertEqual(merge({}, {'a': 1}), {'a': 1})"),
        },
        hidden=hidden(
            "from settings import merge",
            "self.assertEqual(merge({'a': {'b': 1}}, {'a': {'c': 2}, 'd': 3}), {'a': {'b': 1, 'c': 2}, 'd': 3})",
        ),
        work=(
            Look("settings.py", shows="for key in base"),
            Change(
                "settings.py",
                "    for key in base:  \n        result[key] = more.get(key, base[key])  \n    return result \n",
                "    for key, value in more.items():\n        known = result.get(key)\n"
                "        both = isinstance(known, dict) and isinstance(value, dict)\n"
                "        result[key] = merge(known, value) if both else value\n    return result\n",
                wrong="    for key in base:\n        result[key] = more.get(key, base[key])\n    return result\n",
                repeats=True,
            ),
            passing(),
        ),
    ),
    Task(
        name="wrong_indentation",
        quirk="the model writes the lines of a method without their indentation, in the old and in the new text",
        prompt="Urgent items must come before others, in the order in which they were pushed; pop() returns the first.",
        files={
            "queueing/__init__.py": "from queueing.queue import Queue\n",
            "queueing/queue.py": QUEUE,
            "test_queue.py": hidden(
                "from queueing import Queue",
                "q = Queue()",
                "[q.push(n) for n in (1, 2)]",
                "self.assertEqual([q.pop(), q.pop()], [1, 2])",
            ),
        },
        hidden=hidden(
            "from queueing import Queue",
            "q = Queue()",
            "[q.push(n, p) for n, p in ((1, 0), (2, 1), (3, 1), (4, 0))]",
            "self.assertEqual([q.pop() for _ in range(4)], [2, 3, 1, 4])",
            "q.push(5, 1); q.push(6); self.assertEqual(q.pop(), 5)",
        ),
        work=(
            Files("*.py", shows="queue.py"),
            Look("queueing/queue.py", shows="priority > 0"),
            Change(
                "queueing/queue.py",
                QUEUE_OLD,
                QUEUE_NEW,
                wrong=_flattened(QUEUE_OLD),
                wrong_new=_flattened(QUEUE_NEW),
            ),
            Change("queueing/queue.py", "self.items = []\n", "self.items = []\n        self.urgent = 0\n"),
            passing(Look("queueing/queue.py"), Create("queueing/queue.py", QUEUE_FIXED), passing()),
        ),
    ),
    Task(
        name="tabs",
        quirk="the model writes spaces instead of tabs, in the old and in the new text",
        prompt="`make report` must write report.txt with the number of lines of each source file, sorted.",
        files={
            "Makefile": MAKEFILE,
            "src/a.txt": "1\n2\n3\n",
            "src/b.txt": "1\n",
        },
        hidden=hidden(
            "import subprocess",
            "lines = open('Makefile').read().split('\\n')",
            "self.assertEqual(lines[1:3], ['\\t@echo building', '\\twc -l src/*.txt | sort -n > report.txt'])",
            "self.assertTrue(all(not line or line[0] == '\\t' or line[-1] == ':' for line in lines), lines)",
        ),
        work=(
            Look("Makefile", shows="wc -l"),
            Change(
                "Makefile",
                "\t@echo building\n\twc -l src/*.txt > report.txt\n",
                "\t@echo building\n\twc -l src/*.txt | sort -n > report.txt\n",
                wrong="        @echo building\n        wc -l src/*.txt > report.txt\n",
                wrong_new="        @echo building\n        wc -l src/*.txt | sort -n > report.txt\n",
            ),
            Run(
                "cat -A Makefile | head -4",
                shows="^Iwc -l src/*.txt | sort -n",
                otherwise=(Create("Makefile", MAKEFILE.replace("*.txt >", "*.txt | sort -n >")),),
            ),
        ),
    ),
    Task(
        name="typographic_characters",
        quirk="the file has curly quotes, a dash and a no-break space, which the model writes in ASCII each time",
        prompt="The greeting must name the person; keep the typography of the page.",
        files={
            "page.py": (
                "TITLE = 'Welcome'\n"
                "def greet(name):\n    return 'Hello \u2013 it\u2019s a pleasure,\u00a0friend'\n"
                "def leave(name):\n    return '\u201cGoodbye\u201d\u00a0\u2013 take care'\n"
            ),
        },
        hidden=hidden(
            "from page import greet, leave",
            "self.assertIn('Ada', greet('Ada'))",
            "self.assertEqual(leave('x'), '\\u201cGoodbye\\u201d\\u00a0\\u2013 take care')",
        ),
        work=(
            Find("pleasure", shows="page.py"),
            Look("page.py", shows="def greet"),
            Change(
                "page.py",
                "    return 'Hello \u2013 it\u2019s a pleasure,\u00a0friend'\n",
                "    return f'Hello {name} \u2013 a pleasure'\n",
                wrong="    return 'Hello - it's a pleasure, friend'\n",
                repeats=True,
            ),
            Run("python3 -c 'import page; print(page.greet(\"Ada\"))'", shows="Ada"),
        ),
    ),
    Task(
        name="line_numbers_copied",
        quirk="the model copies the line numbers that `cat -n` printed",
        prompt="days_in_month() returns None; implement it, with leap years.",
        files={"leap.py": LEAP},
        hidden=hidden(
            "from leap import days_in_month as d",
            "self.assertEqual([d(2023, 2), d(2024, 2), d(1900, 2), d(2000, 2)], [28, 29, 28, 29])",
            "self.assertEqual([d(2023, m) for m in (1, 4, 12)], [31, 30, 31])",
        ),
        work=(
            Run("cat -n leap.py", shows="if month == 2"),
            Change(
                "leap.py",
                "    if month == 2:\n        return None\n    if month in (4, 6, 9, 11):\n        return None\n"
                "    return None\n",
                "    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)\n    if month == 2:\n"
                "        return 29 if leap else 28\n    return 30 if month in (4, 6, 9, 11) else 31\n",
                wrong="     2\t    if month == 2:\n     3\t        return None\n"
                "     4\t    if month in (4, 6, 9, 11):\n     5\t        return None\n     6\t    return None\n",
            ),
            Run("python3 -c 'import leap; print(leap.days_in_month(2024, 2))'", shows="29"),
        ),
    ),
    Task(
        name="escaped_newlines",
        quirk="the model escapes the line breaks of the old and the new text twice",
        prompt="parse_query() must decode percent escapes and accept keys without a value.",
        files={
            "web/__init__.py": "",
            "web/query.py": QUERY,
        },
        hidden=hidden(
            "from web.query import parse_query",
            "self.assertEqual(parse_query('a=1%202&b&c=x=y'), {'a': '1 2', 'b': '', 'c': 'x=y'})",
        ),
        work=(
            Find("def parse_query", shows="query.py"),
            Look("web/query.py", shows="pairs ="),
            Change(
                "web/query.py",
                '    pairs = [part.split("=") for part in query.split("&")]\n'
                "    return {key: value for key, value in pairs}\n",
                '    pairs = [part.partition("=") for part in query.split("&")]\n'
                "    return {unquote(key): unquote(value) for key, _, value in pairs}\n",
                wrong='    pairs = [part.split(\\"=\\") for part in query.split(\\"&\\")]\\n'
                "    return {key: value for key, value in pairs}\\n",
                wrong_new='    pairs = [part.partition(\\"=\\") for part in query.split(\\"&\\")]\\n'
                "    return {unquote(key): unquote(value) for key, _, value in pairs}\\n",
            ),
            Change("web/query.py", "def parse_query", "from urllib.parse import unquote\n\n\ndef parse_query"),
            Run(
                "python3 -c 'from web.query import *; print(parse_query(\"a=%41\"))'",
                shows="{'a': 'A'}",
                otherwise=(Look("web/query.py"), Create("web/query.py", QUERY_FIXED)),
            ),
        ),
    ),
    Task(
        name="ambiguous_text",
        quirk="the text that the model wants to replace occurs three times",
        prompt="Temperature.to_kelvin() must convert from the unit of the value; the others are right.",
        files={
            "temperature.py": text("""
                class Temperature:
                    def __init__(self, value, unit):
                        self.value, self.unit = value, unit

                    def to_celsius(self):
                        if self.unit == "C":
                            return self.value
                        return (self.value - 32) / 1.8

                    def to_fahrenheit(self):
                        if self.unit == "F":
                            return self.value
                        return self.value * 1.8 + 32

                    def to_kelvin(self):
                        if self.unit == "K":
                            return self.value
                        return self.value + 273
            """),
        },
        hidden=hidden(
            "from temperature import Temperature as T",
            "self.assertAlmostEqual(T(50, 'F').to_kelvin(), 283.15)",
            "self.assertAlmostEqual(T(50, 'F').to_celsius(), 10)",
            "self.assertEqual(T(5, 'C').to_celsius(), 5)",
            "self.assertEqual(T(5, 'F').to_fahrenheit(), 5)",
            "self.assertEqual(T(5, 'K').to_kelvin(), 5)",
        ),
        work=(
            Look("temperature.py", shows="to_kelvin"),
            Change(
                "temperature.py",
                "            return self.value\n        return self.value + 273\n",
                "            return self.value\n        return self.to_celsius() + 273.15\n",
                wrong="            return self.value\n",
                wrong_new="            return self.value\n        return self.to_celsius() + 273.15\n",
            ),
            Run("python3 -c 'from temperature import *; print(Temperature(50, \"F\").to_kelvin())'", shows="283.1"),
        ),
    ),
    Task(
        name="replacement_patterns",
        quirk="the new text has `$&`, `$1`, `$$` and `\\1`, which libraries for replacements interpret",
        prompt="money() must print a dollar sign, and shell_words() the four patterns of the manual.",
        files={"render.py": RENDER, "manual.md": "The patterns are `$&`, `$1`, `$$` and `\\1`.\n"},
        hidden=hidden(
            "from render import money, shell_words",
            "self.assertEqual(money(5), '$5')",
            "self.assertEqual(shell_words(), ['$&', '$1', '$$', '\\\\1'])",
        ),
        work=(
            Answer((Look("render.py", shows="def money"), Look("manual.md", shows="patterns"))),
            Change("render.py", '    return expand("{amount}", {', '    return expand("$" + "{amount}", {'),
            Change("render.py", "    return []\n", '    return ["$&", "$1", "$$", r"\\1"]\n'),
            Run("python3 -c 'import render; print(render.shell_words())'", shows="$&"),
        ),
    ),
    Task(
        name="four_edits_in_one_file",
        quirk="four edits in one file at once: one call where the harness has one, else four calls in one answer",
        prompt="Delays must grow by the factor up to the limit, with the defaults 3 attempts and factor 2.",
        files={"retry.py": RETRY},
        hidden=hidden(
            "import retry",
            "self.assertEqual(retry.delays(5, 1, 3, 20), [1, 3, 9, 20, 20])",
            "self.assertEqual(retry.delays(**retry.DEFAULTS), [0.5, 1.0, 2.0])",
            "self.assertEqual(retry.describe(2), 'attempt 2')",
        ),
        work=(
            Look("retry.py", shows="def delays"),
            MultiChange(
                "retry.py",
                (
                    ('"attempts": 1', '"attempts": 3'),
                    ('"factor": 1.0', '"factor": 2.0'),
                    ("min(limit, delay) for _ in", "min(limit, delay * factor**number) for number in"),
                    ('return "attempt"', 'return f"attempt {attempts}"'),
                ),
            ),
            Run("python3 -c 'import retry; print(retry.delays(**retry.DEFAULTS))'", shows="[0.5, 1.0, 2.0]"),
        ),
    ),
    Task(
        name="edit_of_an_edit",
        quirk="two edits of a file in one answer; the second one changes what the first one wrote",
        prompt="Split parse() in words and numbers, and return both.",
        files={
            "tokens.py": "def parse(line):\n    return line.split()\n",
            "cli.py": "from tokens import parse\n\n\ndef main(line):\n    return ' '.join(parse(line))\n",
        },
        hidden=hidden(
            "from tokens import parse",
            "from cli import main",
            "self.assertEqual(parse('a 1 b 22'), (['a', 'b'], [1, 22]))",
            "self.assertEqual(main('a 1 b 22'), 'a b')",
        ),
        work=(
            Answer((Look("tokens.py", shows="split"), Look("cli.py", shows="join"))),
            Answer(
                (
                    Change(
                        "tokens.py", "    return line.split()\n", "    words = line.split()\n    return words, []\n"
                    ),
                    Change(
                        "tokens.py",
                        "    return words, []\n",
                        "    numbers = [int(word) for word in words if word.isdigit()]\n"
                        "    return [word for word in words if not word.isdigit()], numbers\n",
                    ),
                    Change("cli.py", "parse(line))", "parse(line)[0])"),
                )
            ),
            Run("python3 -c 'import cli; print(cli.main(\"a 1 b\"))'", shows="a b"),
        ),
    ),
)
