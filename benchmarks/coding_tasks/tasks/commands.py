"""Tasks whose commands have long or unusual output, wait, run on, or change files on their own."""

from benchmarks.coding_tasks.steps import Answer, Change, Find, Look, Run, Task
from benchmarks.coding_tasks.tasks.writing import failing, hidden, passing, text

SERVER = text("""
    import http.server
    import json


    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps({"path": self.path}).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass


    if __name__ == "__main__":
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        open("port.txt", "w").write(str(server.server_port))
        server.serve_forever()
""")
FETCH = (
    "for i in $(seq 100); do test -s port.txt && break; sleep 0.1; done; "
    'python3 -c "import urllib.request as u; '
    "print(u.urlopen('http://127.0.0.1:' + open('port.txt').read() + '/health?x=1').read().decode())\""
    " | tee answer.json"
)

TASKS = (
    Task(
        name="long_output_error_at_the_end",
        quirk="the tests print 1 MB before the error",
        prompt="The checksum of the migration is wrong; find out why and repair it.",
        files={
            "checksum.py": text("""
                def checksum(data):
                    total = 7
                    for byte in data:
                        total = total * 31 + byte
                    return total
            """),
            "test_checksum.py": hidden(
                "from checksum import checksum",
                "for number in range(20000):",
                "    print('migrating record', number, 'of 20000', '.' * 24)",
                "self.assertLess(checksum(b'abcdefgh' * 9), 2**32, 'CHECKSUM-TOO-LARGE')",
            ),
        },
        hidden=hidden("from checksum import checksum", "self.assertEqual(checksum(b'x' * 50), 3875161927)"),
        work=(
            failing("CHECKSUM-TOO-LARGE", Run("python3 -m unittest -q 2>&1 | grep Error", shows="CHECKSUM-TOO-LARGE")),
            Find("def checksum", shows="checksum.py"),
            Change("checksum.py", "total * 31 + byte\n", "(total * 31 + byte) % 2**32\n"),
            passing(),
        ),
    ),
    Task(
        name="long_output_error_at_the_beginning",
        quirk="a build prints the error first and then 1 MB",
        prompt="The build fails; repair the module that it names.",
        files={
            "build.py": text("""
                import sys
                from pathlib import Path

                for path in sorted(Path("parts").glob("*.py")):
                    try:
                        compile(path.read_text(), str(path), "exec")
                    except SyntaxError as error:
                        print("BROKEN", path, "line", error.lineno, flush=True)
                for number in range(20000):
                    print("linking object", number, "." * 30)
            """),
            **{f"parts/part{number}.py": f"VALUE = {number}\n" for number in range(30)},
            "parts/part17.py": "VALUE = (17\n",
        },
        hidden=hidden("from parts.part17 import VALUE", "self.assertEqual(VALUE, 17)"),
        work=(
            Run(
                "python3 build.py",
                shows="BROKEN parts/part17.py",
                otherwise=(Run("python3 build.py | grep BROKEN", shows="part17.py"),),
            ),
            Look("parts/part17.py", shows="(17"),
            Change("parts/part17.py", "(17", "17"),
            Run("python3 build.py | grep -c BROKEN; echo end", shows="end"),
        ),
    ),
    Task(
        name="first_fix_is_not_enough",
        quirk="the first fix of the model is wrong, and the tests show it",
        prompt="Intervals that touch must be merged.",
        files={
            "intervals.py": text("""
                def merge(intervals):
                    result = []
                    for start, end in intervals:
                        if result and start < result[-1][1]:
                            result[-1] = (result[-1][0], end)
                        else:
                            result.append((start, end))
                    return result
            """),
            "test_intervals.py": hidden(
                "from intervals import merge",
                "self.assertEqual(merge([(1, 2), (2, 3)]), [(1, 3)])",
                "self.assertEqual(merge([(1, 9), (2, 3)]), [(1, 9)])",
            ),
        },
        hidden=hidden(
            "from intervals import merge", "self.assertEqual(merge([(5, 6), (1, 9), (2, 3), (9, 10)]), [(1, 10)])"
        ),
        work=(
            failing(),
            Look("intervals.py", shows="start <"),
            Answer((Change("intervals.py", "start < result", "start <= result"), failing("(1, 9)", failing("(1, 9)")))),
            Change("intervals.py", "result[-1][0], end)", "result[-1][0], max(end, result[-1][1]))"),
            Change("intervals.py", "in intervals:", "in sorted(intervals):"),
            passing(),
        ),
    ),
    Task(
        name="server_in_the_background",
        quirk="the model starts a server in the background and leaves it running",
        prompt="The server must answer /health with the status; store its answer in answer.json.",
        files={"server.py": SERVER},
        hidden=hidden("import json", "self.assertEqual(json.load(open('answer.json')), {'status': 'ok', 'x': '1'})"),
        work=(
            Look("server.py", shows="do_GET"),
            Change(
                "server.py",
                'json.dumps({"path": self.path})',
                'json.dumps({"status": "ok", **dict(urllib.parse.parse_qsl(self.path.partition("?")[2]))})',
            ),
            Change("server.py", "import json\n", "import json\nimport urllib.parse\n"),
            Run("python3 server.py", background=True),
            Run(FETCH, shows='"status": "ok"'),
        ),
    ),
    Task(
        name="command_reads_input",
        quirk="a command reads standard input, which nobody writes",
        prompt="setup.py asks for a name; it must take it from the first argument, and `demo` without one.",
        files={
            "setup.py": "name = input('name? ')\nopen('name.txt', 'w').write(name)\nprint('set up', name)\n",
        },
        hidden=hidden(
            "from subprocess import DEVNULL, run; import sys",
            "for words, name in ((['Ada'], 'Ada'), ([], 'demo')):",
            "    run([sys.executable, 'setup.py', *words], check=True, stdin=DEVNULL, timeout=20)",
            "    self.assertEqual(open('name.txt').read(), name)",
        ),
        work=(
            Run("python3 setup.py", shows="EOF", seconds=20),
            Look("setup.py", shows="input"),
            Change("setup.py", "name = input('name? ')", "import sys\n\nname = (sys.argv[1:] or ['demo'])[0]"),
            Run("python3 setup.py", shows="set up demo"),
        ),
    ),
    Task(
        name="command_never_ends",
        quirk="a command with children never ends; the model has set a time limit",
        prompt="The worker never stops: it must end when the queue is empty.",
        files={
            "worker.py": text("""
                import subprocess
                import time

                queue = ["a", "b"]
                helper = subprocess.Popen(["sleep", "1000"])
                while True:
                    if queue:
                        print("did", queue.pop(0), flush=True)
                    time.sleep(0.05)
            """),
        },
        hidden=hidden(
            "import subprocess, sys",
            "done = subprocess.run([sys.executable, 'worker.py'], capture_output=True, text=True, timeout=10)",
            "self.assertEqual(done.stdout, 'did a\\ndid b\\n')",
        ),
        work=(
            Run("python3 worker.py", shows="did b", seconds=5),
            Look("worker.py", shows="while True"),
            Change("worker.py", "while True:\n    if queue:\n        print(", "while queue:\n    print("),
            Change("worker.py", 'helper = subprocess.Popen(["sleep", "1000"])\n', ""),
            Run("python3 worker.py; echo ended", shows="ended"),
        ),
    ),
    Task(
        name="binary_output",
        quirk="a command prints control sequences, NUL bytes and invalid UTF-8",
        prompt="decode.py must skip the header of 4 bytes and decode the rest as Latin-1.",
        files={
            "decode.py": "def decode(data):\n    return data.decode()\n",
            "sample.bin": b"\x00\x01\xff\xfeCaf\xe9 \x1b[31mred\x1b[0m\x00\x07\n" * 40,
        },
        hidden=hidden("from decode import decode", "self.assertEqual(decode(b'\\0\\1\\2\\3Caf\\xe9'), 'Caf\\xe9')"),
        work=(
            Run("cat sample.bin", shows="Caf"),
            Run("head -c 12 sample.bin | od -c | head -2", shows="377 376"),
            Look("decode.py", shows="decode()"),
            Change("decode.py", "data.decode()", "data[4:].decode('latin-1')"),
            Run("python3 -c \"import decode; print(decode.decode(open('sample.bin','rb').read()))\"", shows="red"),
        ),
    ),
    Task(
        name="formatter_between_read_and_edit",
        quirk="a formatter changes the file between the reading and the edit",
        prompt="Format the code, then let area() accept a tuple.",
        files={
            "shapes.py": "def area( width,height ):\n  return width*height\n",
            "format.py": text("""
                import re
                from pathlib import Path

                code = Path("shapes.py").read_text()
                code = code.replace("( ", "(").replace(" )", ")").replace(",", ", ").replace("*", " * ")
                Path("shapes.py").write_text(re.sub("^  ", "    ", code, flags=re.M))
                print("formatted")
            """),
        },
        hidden=hidden(
            "from shapes import area",
            "self.assertEqual(area((2, 3)), 6)",
            "self.assertIn('    return width * height', open('shapes.py').read())",
        ),
        work=(
            Look("shapes.py", shows="def area"),
            Run("python3 format.py", shows="formatted"),
            Change(
                "shapes.py",
                "def area(width, height):\n    return width * height\n",
                "def area(size):\n    width, height = size\n    return width * height\n",
                wrong="def area( width,height ):\n  return width*height\n",
                wrong_new="def area( size ):\n  width,height = size\n  return width*height\n",
            ),
            Run("python3 -c 'import shapes; print(shapes.area((2, 3)))'", shows="6"),
        ),
    ),
)
