"""`make demo`: the part of Newkind that works so far, on real images that need no download."""

import os
import subprocess
import sys
import tempfile

import numpy as np
from sklearn.datasets import load_digits


def main() -> None:
    print("Newkind does not discover categories in this version yet, so this demo is a placeholder: it shows")
    print("`newkind inspect` on the 1,797 handwritten digits that scikit-learn brings along, with the digits 0-4 as")
    print("known classes (half of their images labelled) and 5-9 as new ones.\n")
    digits = load_digits()
    images = (digits.images * 255 / 16).astype(np.uint8)
    labelled = (digits.target < 5) & (np.arange(len(images)) % 2 == 0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "digits.npz")
        np.savez(path, images=images, labels=np.where(labelled, digits.target, -1), truth=digits.target)
        print(f"$ newkind inspect {path}")
        subprocess.run([sys.executable, "-m", "newkind", "inspect", path], check=True)
    print("\nNext: newkind inspect FOLDER on images of your own.")


if __name__ == "__main__":
    main()
