"""Tasks whose model gives unusual answers: several calls at once, malformed calls, answers that end early."""

from benchmarks.coding_tasks.steps import Answer, Change, Create, Find, Look, Mistake, MultiChange, Run, Task
from benchmarks.coding_tasks.tasks.writing import failing, hidden, passing, text

INVENTORY = text("""
    class Inventory:
        def __init__(self):
            self.stock = {}

        def add(self, name, count):
            self.stock[name] = count

        def remove(self, name, count):
            self.stock[name] -= count
""")
INVENTORY_TEST = hidden(
    "from inventory import Inventory",
    "i = Inventory()",
    "i.add('nut', 2); i.add('nut', 3)",
    "self.assertEqual(i.stock, {'nut': 5})",
)
BASE64 = text('''
    ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


    def encode(data):
        """Return the Base64 form of bytes, with padding."""
        result = ""
        for start in range(0, len(data), 3):
            group = data[start : start + 3]
            number = int.from_bytes(group + bytes(3 - len(group)), "big")
            letters = "".join(ALPHABET[number >> shift & 63] for shift in (18, 12, 6, 0))
            result += letters[: len(group) + 1] + "=" * (3 - len(group))
        return result


    def decode(text):
        """Return the bytes of a Base64 text. Raise ValueError for letters outside of the alphabet."""
        digits = [ALPHABET.index(letter) for letter in text.rstrip("=")]
        bits = "".join(f"{digit:06b}" for digit in digits)
        return bytes(int(bits[start : start + 8], 2) for start in range(0, len(bits) - len(bits) % 8, 8))
''')

TASKS = (
    Task(
        name="edit_then_command",
        quirk="an edit and a command that needs it, in one answer",
        prompt="Add the field `color` to the schema and generate model.py again.",
        files={
            "schema.txt": "name\nsize\n",
            "generate.py": text("""
                fields = open("schema.txt").read().split()
                with open("model.py", "w") as file:
                    file.write("FIELDS = " + repr(tuple(fields)) + "\\n")
                print(len(fields), "fields")
            """),
            "model.py": "FIELDS = ('name', 'size')\n",
        },
        hidden=hidden("from model import FIELDS", "self.assertEqual(FIELDS, ('name', 'size', 'color'))"),
        work=(
            Answer((Look("schema.txt", shows="size"), Look("generate.py", shows="fields"))),
            Answer((Change("schema.txt", "size\n", "size\ncolor\n"), Run("python3 generate.py", shows="3 fields"))),
        ),
    ),
    Task(
        name="command_then_edit",
        quirk="a command that saves the old file, and an edit of it, in one answer",
        prompt="Keep the old limits as limits_v1.json, then double the limit of uploads.",
        files={"limits.json": '{"uploads": 10, "downloads": 50}\n'},
        hidden=hidden(
            "import json",
            "self.assertEqual(json.load(open('limits_v1.json')), {'uploads': 10, 'downloads': 50})",
            "self.assertEqual(json.load(open('limits.json')), {'uploads': 20, 'downloads': 50})",
        ),
        work=(
            Look("limits.json", shows="uploads"),
            Answer(
                (
                    Run("sleep 0.3; cp limits.json limits_v1.json && echo saved", shows="saved"),
                    Change("limits.json", '"uploads": 10', '"uploads": 20'),
                )
            ),
            Run("cat limits_v1.json limits.json", shows='"uploads": 20'),
        ),
    ),
    Task(
        name="write_cut_by_the_limit",
        quirk="the output limit cuts the call that writes a file",
        prompt="Write codec.py with encode() and decode() for Base64, without the standard library.",
        files={"README.md": "codec.py has encode(data) and decode(text).\n"},
        hidden=hidden(
            "import base64, codec",
            "for data in (b'', b'a', b'ab', b'abc', bytes(range(256))):",
            "    self.assertEqual(codec.encode(data), base64.b64encode(data).decode())",
            "    self.assertEqual(codec.decode(codec.encode(data)), data)",
        ),
        work=(
            Look("README.md", shows="codec.py"),
            Answer((Create("codec.py", BASE64),), faults=("cut",)),
            Run("python3 -c 'import codec; print(codec.encode(b\"abc\"))'", shows="YWJj"),
        ),
    ),
    Task(
        name="edit_cut_by_the_limit",
        quirk="the output limit cuts the second of two edits in one answer",
        prompt="Inventory.add() must add to the stock, and remove() must refuse to go below zero.",
        files={"inventory.py": INVENTORY, "test_inventory.py": INVENTORY_TEST},
        hidden=hidden(
            "from inventory import Inventory",
            "i = Inventory(); i.add('nut', 2); i.add('nut', 3)",
            "self.assertRaises(ValueError, i.remove, 'nut', 6)",
            "self.assertEqual(i.stock, {'nut': 5})",
        ),
        work=(
            failing(),
            Look("inventory.py", shows="def remove"),
            Answer(
                (
                    Look("test_inventory.py", shows="nut"),
                    Change(
                        "inventory.py", "self.stock[name] = count", "self.stock[name] = self.stock.get(name, 0) + count"
                    ),
                ),
                faults=("cut",),
            ),
            Answer(
                (
                    Change(
                        "inventory.py",
                        "        self.stock[name] -= count\n",
                        "        if self.stock.get(name, 0) < count:\n"
                        '            raise ValueError(f"{name}: {count} of {self.stock.get(name, 0)}")\n'
                        "        self.stock[name] -= count\n",
                    ),
                ),
                faults=("cut",),
            ),
            passing(),
        ),
    ),
    Task(
        name="unknown_tool",
        quirk="the model calls a tool that it knows from elsewhere, and adds an argument that no tool has",
        prompt="slugify() must turn every run of other characters into one dash, without dashes at the ends.",
        files={
            "text/__init__.py": "",
            "text/slug.py": "def slugify(title):\n    return title.lower().replace(' ', '-')\n",
            "text/links.py": "def link(title):\n    return '/' + title.lower().replace(' ', '-')\n",
        },
        hidden=hidden(
            "from text.links import link",
            "from text.slug import slugify",
            "self.assertEqual(slugify('  Hello, big World! '), 'hello-big-world')",
            "self.assertEqual(link('A & B'), '/a-b')",
        ),
        work=(
            Find("replace", shows="links.py"),
            Mistake("unknown tool", Look("text/slug.py", shows="slugify")),
            Mistake(
                "additional argument",
                Change(
                    "text/slug.py",
                    "def slugify(title):\n    return title.lower().replace(' ', '-')\n",
                    "import re\n\n\ndef slugify(title):\n"
                    "    return re.sub('[^a-z0-9]+', '-', title.lower()).strip('-')\n",
                ),
            ),
            Look("text/links.py", shows="def link"),
            Change(
                "text/links.py",
                "def link(title):\n    return '/' + title.lower().replace(' ', '-')\n",
                "from text.slug import slugify\n\n\ndef link(title):\n    return '/' + slugify(title)\n",
            ),
            Run("python3 -c 'from text.links import link; print(link(\"A & B\"))'", shows="/a-b"),
        ),
    ),
    Task(
        name="wrong_argument_types",
        quirk="the model passes a list where a text belongs, and forgets an argument",
        prompt="Roman numerals above 3 are wrong: use the subtractive form.",
        files={
            "roman.py": text("""
                NUMERALS = [(10, "X"), (5, "V"), (1, "I")]


                def roman(number):
                    result = ""
                    for value, letters in NUMERALS:
                        result += letters * (number // value)
                        number %= value
                    return result
            """),
        },
        hidden=hidden(
            "from roman import roman",
            "self.assertEqual([roman(n) for n in (3, 4, 9, 14, 40)], ['III', 'IV', 'IX', 'XIV', 'XL'])",
        ),
        work=(
            Mistake("wrong type", Look("roman.py", shows="NUMERALS")),
            Mistake(
                "missing argument",
                Change(
                    "roman.py",
                    'NUMERALS = [(10, "X"), (5, "V"), (1, "I")]',
                    'NUMERALS = [(40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]',
                ),
            ),
            Mistake("wrong type", Run("python3 -c 'import roman; print(roman.roman(14))'", shows="XIV")),
        ),
    ),
    Task(
        name="invalid_json",
        quirk="the arguments of a call are not valid JSON",
        prompt="Matrices: transpose() fails for empty matrices, multiply() is missing.",
        files={
            "matrix.py": "def transpose(rows):\n    return [[row[i] for row in rows] for i in range(len(rows[0]))]\n"
        },
        hidden=hidden(
            "from matrix import multiply, transpose",
            "self.assertEqual(transpose([]), [])",
            "self.assertEqual(transpose([[1, 2], [3, 4]]), [[1, 3], [2, 4]])",
            "self.assertEqual(multiply([[1, 2], [3, 4]], [[0, 1], [1, 0]]), [[2, 1], [4, 3]])",
        ),
        work=(
            Mistake("invalid JSON", Look("matrix.py", shows="transpose")),
            Mistake(
                "invalid JSON",
                Create(
                    "matrix.py",
                    "def transpose(rows):\n    return [list(column) for column in zip(*rows)]\n\n\n"
                    "def multiply(left, right):\n    columns = transpose(right)\n"
                    "    return [[sum(a * b for a, b in zip(row, column)) for column in columns] for row in left]\n",
                ),
            ),
            Run("python3 -c 'import matrix; print(matrix.transpose([]))'", shows="[]"),
        ),
    ),
    Task(
        name="empty_answer",
        quirk="an answer of the model has neither text nor a call",
        prompt="The cache must forget the entry that was used least recently, not the oldest.",
        files={
            "cache.py": text("""
                class Cache:
                    def __init__(self, size):
                        self.size, self.entries = size, {}

                    def put(self, key, value):
                        self.entries[key] = value
                        if len(self.entries) > self.size:
                            del self.entries[next(iter(self.entries))]

                    def get(self, key):
                        return self.entries.get(key)
            """),
        },
        hidden=hidden(
            "from cache import Cache",
            "c = Cache(2); c.put(1, 'a'); c.put(2, 'b'); c.get(1); c.put(3, 'c')",
            "self.assertEqual([c.get(k) for k in (1, 2, 3)], ['a', None, 'c'])",
        ),
        work=(
            Look("cache.py", shows="def get"),
            Answer(
                (
                    Change(
                        "cache.py",
                        "        return self.entries.get(key)\n",
                        "        if key in self.entries:\n            self.entries[key] = self.entries.pop(key)\n"
                        "        return self.entries.get(key)\n",
                    ),
                ),
                faults=("empty",),
            ),
            Run("python3 -c 'import cache; print(cache.Cache(1).get(1))'", shows="None"),
        ),
    ),
    Task(
        name="refused_model_calls",
        quirk="the provider answers with 429, then twice with 529, before it answers",
        prompt="rank() must give equal scores the same place, and leave out the places after them.",
        files={
            "ranking.py": "def rank(scores):\n    return {score: place for place, score in enumerate(scores, 1)}\n",
            "report.py": "from ranking import rank\n\n\n"
            "def lines(scores):\n    return [str(rank(scores)[s]) for s in scores]\n",
        },
        hidden=hidden(
            "from ranking import rank",
            "from report import lines",
            "self.assertEqual(rank([5, 9, 9, 1]), {9: 1, 5: 3, 1: 4})",
            "self.assertEqual(lines([5, 9]), ['2. 5', '1. 9'])",
        ),
        work=(
            Answer((Find("def rank", shows="ranking.py"),), faults=("rate limited",)),
            Change(
                "ranking.py",
                "    return {score: place for place, score in enumerate(scores, 1)}\n",
                "    ordered = sorted(scores, reverse=True)\n"
                "    return {score: ordered.index(score) + 1 for score in ordered}\n",
            ),
            Answer(
                (Change("report.py", "[str(rank(scores)[s]) for s", "[f'{rank(scores)[s]}. {s}' for s"),),
                faults=("overloaded", "overloaded"),
            ),
            Run("python3 -c 'import report; print(report.lines([5, 9]))'", shows="1. 9"),
        ),
    ),
    Task(
        name="broken_stream",
        quirk="the connection breaks off in the middle of an answer that changes a file",
        prompt="Counter.increment() must be usable by threads; next() returns the number before.",
        files={
            "counter.py": "class Counter:\n    def __init__(self):\n        self.number = 0\n\n"
            "    def increment(self):\n        self.number += 1\n",
        },
        hidden=hidden(
            "import counter, threading",
            "c = counter.Counter()",
            "self.assertEqual([c.next(), c.next()], [0, 1])",
            "self.assertIsInstance(c.lock, type(threading.Lock()))",
            "self.assertEqual(open('counter.py').read().count('with self.lock'), 2)",
        ),
        work=(
            Look("counter.py", shows="increment"),
            Change("counter.py", "class Counter:\n", "import threading\n\n\nclass Counter:\n"),
            Answer(
                (
                    Change(
                        "counter.py",
                        "        self.number = 0\n\n    def increment(self):\n        self.number += 1\n",
                        "        self.number, self.lock = 0, threading.Lock()\n\n    def increment(self):\n"
                        "        with self.lock:\n            self.number += 1\n\n    def next(self):\n"
                        "        with self.lock:\n            self.number += 1\n            return self.number - 1\n",
                    ),
                ),
                faults=("broken stream",),
            ),
            Run("python3 -c 'import counter; print(counter.Counter().next())'", shows="0"),
        ),
    ),
    Task(
        name="repeated_calls",
        quirk="the model reads a file five times in one answer, and runs the same command five times",
        prompt="The three units of the converter must agree; measure the time of convert() before and after.",
        files={
            "units.py": "FEET = 3\nINCHES = 36\n\n\ndef convert(yards):\n    return yards * FEET, yards * INCHES\n",
            "bench.py": "from units import convert\nprint('convert', convert(2))\n",
        },
        hidden=hidden(
            "from units import convert",
            "self.assertEqual(convert(2), {'yards': 2, 'feet': 6, 'inches': 72})",
        ),
        work=(
            Answer(tuple(Look("units.py", shows="INCHES") for _ in range(5))),
            *(Run("python3 bench.py", shows="(6, 72)") for _ in range(5)),
            MultiChange(
                "units.py", (("return yards * FEET, ", "return {'yards': yards, 'feet': yards * FEET, 'inches': "),)
            ),
            Change("units.py", "yards * INCHES", "yards * INCHES}"),
            *(Run("python3 bench.py", shows="72}") for _ in range(5)),
        ),
    ),
)
