"""Tasks whose files are hard to find, to read or to keep intact."""

from benchmarks.coding_tasks.steps import Answer, Change, Create, Files, Find, Look, Run, Task
from benchmarks.coding_tasks.tasks.writing import hidden

LOG = "".join(
    f"2026-01-{day:02d} request {number} took {number % 97} ms\n" for day in range(1, 29) for number in range(400)
)
EVENTS = LOG.replace("2026-01-19 request 200 took 6 ms", "2026-01-19 request 200 FAILED code=E4711")
TABLE = "TABLE = {" + ", ".join(f"'key{number}': {number}" for number in range(12_000)) + "}"
SPACED = "src/Größen und Maße/länge.py"

TASKS = (
    Task(
        name="invented_path",
        quirk="the model reads files at paths that do not exist, and searches for them then",
        prompt="The helper that pads numbers must pad to 4 digits, and its caller must not cut them.",
        files={
            "app/core/fmt.py": "def pad(number):\n    return str(number).zfill(3)\n",
            "app/views/row.py": "from app.core.fmt import pad\n\n\ndef row(number):\n    return pad(number)[:3]\n",
        },
        hidden=hidden("from app.views.row import row", "self.assertEqual([row(7), row(12345)], ['0007', '12345'])"),
        work=(
            Answer((Look("src/utils/helpers.py"), Look("app/helpers/"), Look("app/core"))),
            Find("def pad", shows="fmt.py"),
            Files("row.py", shows="row.py"),
            Answer((Look("app/core/fmt.py", shows="zfill"), Look("app/views/row.py", shows="[:3]"))),
            Change("app/core/fmt.py", "zfill(3)", "zfill(4)"),
            Change("app/views/row.py", "pad(number)[:3]", "pad(number)"),
            Run("python3 -c 'from app.views.row import row; print(row(7))'", shows="0007"),
        ),
    ),
    Task(
        name="absolute_path_with_spaces",
        quirk="absolute paths with spaces and letters outside of ASCII",
        prompt="The conversion of inches is wrong, and there should be one for feet.",
        files={SPACED: "def inches(number):\n    return number * 2.5\n", "src/main.py": "print('main')\n"},
        hidden=hidden(
            "import runpy",
            f"m = runpy.run_path({SPACED!r})",
            "self.assertEqual((m['inches'](10), m['feet'](10)), (25.4, 304.8))",
            "self.assertEqual(open('src/Größen und Maße/größe ü.txt').read(), 'Fuß\\n')",
        ),
        work=(
            Find("def inches", shows="inches(number)"),
            Look("{workspace}/" + SPACED, shows="2.5"),
            Change(
                "{workspace}/" + SPACED,
                "    return number * 2.5\n",
                "    return number * 2.54\n\n\ndef feet(number):\n    return number * 30.48\n",
            ),
            Create("{workspace}/src/Größen und Maße/größe ü.txt", "Fuß\n"),
            Run("cat 'src/Größen und Maße/größe ü.txt'", shows="Fuß"),
        ),
    ),
    Task(
        name="crlf",
        quirk="the file has CRLF line endings, and the model writes LF",
        prompt="The ini parser must ignore comments; keep the line endings of the file.",
        files={
            "ini.py": "def parse(text):\r\n    result = {}\r\n    for line in text.splitlines():\r\n"
            "        name, _, value = line.partition('=')\r\n        result[name.strip()] = value.strip()\r\n"
            "    return result\r\n",
        },
        hidden=hidden(
            "from ini import parse",
            "self.assertEqual(parse('; note\\na = 1\\n'), {'a': '1'})",
            "data = open('ini.py', 'rb').read()",
            "self.assertEqual((data.count(b'\\n'), data.count(b'\\r')), (data.count(b'\\r\\n'),) * 2)",
        ),
        work=(
            Look("ini.py", shows="partition"),
            Change(
                "ini.py",
                "    for line in text.splitlines():\n        name, _, value = line.partition('=')\n",
                "    for line in text.splitlines():\n        if line.startswith(';'):\n            continue\n"
                "        name, _, value = line.partition('=')\n",
            ),
            Run("python3 -c 'import ini; print(ini.parse(\"a=1\"))'", shows="{'a': '1'}"),
        ),
    ),
    Task(
        name="byte_order_mark",
        quirk="the file begins with a byte order mark, and the edit is in its first line",
        prompt="Rename the column `nr` to `number`; spreadsheets need the byte order mark.",
        files={"table.csv": b"\xef\xbb\xbfnr;name\n1;Ada\n", "load.py": "COLUMNS = ('nr', 'name')\n"},
        hidden=hidden(
            "from load import COLUMNS",
            "self.assertEqual(open('table.csv', 'rb').read(), b'\\xef\\xbb\\xbfnumber;name\\n1;Ada\\n')",
            "self.assertEqual(COLUMNS, ('number', 'name'))",
        ),
        work=(
            Find("nr", shows="load.py"),
            Look("table.csv", shows="nr;name"),
            Answer((Change("table.csv", "nr;name\n", "number;name\n"), Change("load.py", "'nr'", "'number'"))),
            Run("head -1 table.csv", shows="number;name"),
        ),
    ),
    Task(
        name="latin_1",
        quirk="the file is not UTF-8; if the edit is refused, the model uses a command",
        prompt="Raise the price of the coffee to 4; the file is Latin-1 and must stay so.",
        files={
            "menu.py": b"# coding: latin-1\nMENU = {'Caf\xe9': 3, 'Th\xe9': 2}\nNOTE = 'cr\xe8me br\xfbl\xe9e'\n",
        },
        hidden=hidden(
            "from menu import MENU, NOTE",
            "self.assertEqual(MENU, {'Caf\\xe9': 4, 'Th\\xe9': 2})",
            "self.assertEqual(NOTE, 'cr\\xe8me br\\xfbl\\xe9e')",
        ),
        work=(
            Look("menu.py", shows="MENU"),
            Change(
                "menu.py",
                "': 3, 'Th",
                "': 4, 'Th",
                otherwise=(Run("sed -i \"s/': 3,/': 4,/\" menu.py && echo done", shows="done"),),
            ),
            Run("python3 -c 'import menu; print(ascii(menu.MENU))'", shows=": 4"),
        ),
    ),
    Task(
        name="large_file_in_pages",
        quirk="a log of 11,200 lines, which the model reads page by page up to the error",
        prompt="Find the failed request in the log and add its code to codes.py.",
        files={"service.log": EVENTS, "codes.py": "CODES = {}\n"},
        hidden=hidden("from codes import CODES", "self.assertEqual(CODES, {'E4711': '2026-01-19'})"),
        work=(
            Look("service.log", shows="code=E4711"),
            Change("codes.py", "{}", "{'E4711': '2026-01-19'}"),
            Run("python3 -c 'import codes; print(codes.CODES)'", shows="E4711"),
        ),
    ),
    Task(
        name="very_long_line",
        quirk="the text to replace is in a line of 240,000 characters",
        prompt="key7777 must be 0 in the generated table, and lookup() must return None for unknown keys.",
        files={"table.py": TABLE + "\n\n\ndef lookup(key):\n    return TABLE[key]\n"},
        hidden=hidden(
            "from table import TABLE, lookup",
            "self.assertEqual([lookup('key7777'), lookup('key11999'), lookup('x')], [0, 11999, None])",
            "self.assertEqual(len(TABLE), 12000)",
        ),
        work=(
            Find("def lookup", shows="lookup"),
            Run("grep -o \"'key7777': [0-9]*\" table.py", shows="7777"),
            Change("table.py", "'key7777': 7777,", "'key7777': 0,"),
            Change("table.py", "return TABLE[key]", "return TABLE.get(key)"),
            Run("python3 -c 'import table; print(table.lookup(\"x\"))'", shows="None"),
        ),
    ),
    Task(
        name="symbolic_link",
        quirk="the model edits a file through a symbolic link",
        prompt="The retry count in current.toml must be 5; current.toml must stay a link.",
        files={"configs/v2.toml": "[http]\nretries = 1\ntimeout = 10\n", "configs/v1.toml": "[http]\nretries = 1\n"},
        links={"current.toml": "configs/v2.toml"},
        hidden=hidden(
            "import os, tomllib",
            "self.assertTrue(os.path.islink('current.toml'))",
            "self.assertEqual(tomllib.load(open('configs/v2.toml', 'rb'))['http'], {'retries': 5, 'timeout': 10})",
            "self.assertEqual(open('configs/v1.toml').read(), '[http]\\nretries = 1\\n')",
        ),
        work=(
            Look("current.toml", shows="retries"),
            Change("current.toml", "retries = 1\n", "retries = 5\n"),
            Run("ls -l current.toml; cat configs/v2.toml", shows="retries = 5"),
        ),
    ),
    Task(
        name="executable_without_final_newline",
        quirk="an executable script whose last line has no line break",
        prompt="greet.sh must greet everyone in its arguments, not only the first.",
        files={"greet.sh": "#!/bin/sh\nset -e\necho hello $1"},
        executable=("greet.sh",),
        hidden=hidden(
            "import os, subprocess",
            "self.assertTrue(os.access('greet.sh', os.X_OK))",
            "self.assertEqual(subprocess.check_output(['./greet.sh', 'a', 'b'], text=True), 'hello a\\nhello b\\n')",
        ),
        work=(
            Look("greet.sh", shows="echo hello"),
            Change(
                "greet.sh",
                "set -e\necho hello $1",
                'set -e\nfor name in "$@"; do echo "hello $name"; done',
                wrong="set -e\necho hello $1\n",
                wrong_new='set -e\nfor name in "$@"; do echo "hello $name"; done\n',
            ),
            Run("./greet.sh a b", shows="hello b"),
        ),
    ),
    Task(
        name="search_among_ignored_files",
        quirk="the pattern has special characters, and an ignored folder has 3,000 lines that match",
        prompt='Remove the debug output `print(f"[debug] ...")` from the sources; the build folder is generated.',
        files={
            ".gitignore": "build/\n",
            **{
                f"build/gen{number}.py": "".join(f'print(f"[debug] {n}")\n' for n in range(100)) for number in range(30)
            },
            "lib/alpha.py": 'def alpha(x):\n    print(f"[debug] {x}")\n    return x + 1\n',
            "lib/beta.py": "def beta(x):\n    return x * 2\n",
            "lib/zeta.py": 'def zeta(x):\n    if x:\n        print(f"[debug] {x}")\n    return -x\n',
        },
        hidden=hidden(
            "import contextlib, io",
            "from lib.alpha import alpha",
            "from lib.zeta import zeta",
            "out = io.StringIO()",
            "with contextlib.redirect_stdout(out):",
            "    self.assertEqual([alpha(1), zeta(1), zeta(0)], [2, -1, 0])",
            "self.assertEqual(out.getvalue(), '')",
        ),
        work=(
            Find(
                r"print\(f\"\[debug\]",
                shows="zeta.py",
                otherwise=(Run("git grep -n 'debug' -- lib", shows="zeta.py"),),
            ),
            Answer((Look("lib/alpha.py", shows="debug"), Look("lib/zeta.py", shows="debug"))),
            Answer(
                (
                    Change("lib/alpha.py", '    print(f"[debug] {x}")\n', ""),
                    Change("lib/zeta.py", '    if x:\n        print(f"[debug] {x}")\n', ""),
                )
            ),
            Run("git grep -c debug -- lib; echo none", shows="none"),
        ),
    ),
)
