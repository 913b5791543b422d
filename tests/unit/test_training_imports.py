import subprocess
import sys


def test_the_loop_knows_no_framework() -> None:
    modules = ("loop", "clock", "mllog", "checkpoint", "rank", "placement")
    code = "import sys; sys.path.insert(0, 'scripts')\n" + "".join(
        f"import faceoff.training.{module}\n" for module in modules
    )
    code += "print(sorted({'torch', 'tensorflow', 'keras'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_pytorch_does_not_load_tensorflow() -> None:
    code = (
        "import sys; sys.path.insert(0, 'scripts')\n"
        "import faceoff.training.pytorch, faceoff.benchmarks.ncf\n"
        "print(sorted({'tensorflow', 'keras'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
