"""Data sources: folders, tables, arrays, features, dataset objects and published benchmarks give a `Collection`."""

from newkind.data.arrays import from_arrays, from_features
from newkind.data.benchmarks import BENCHMARKS, Benchmark, load_benchmark
from newkind.data.boxed_data import read_boxes
from newkind.data.boxes import BoxImages
from newkind.data.catalog import Catalog, Collection, Skipped, Truth, find_obstacles
from newkind.data.folders import read_folder
from newkind.data.image_files import ImageFiles, find_images
from newkind.data.inspection import Inspection, inspect_collection
from newkind.data.items import ArrayImages, DatasetImages, EncodedImages, Features, FileImages, Images
from newkind.data.labels import Labels, encode_labels, encode_truth
from newkind.data.names import Names, printable
from newkind.data.npy import read_npy
from newkind.data.npz import read_npz
from newkind.data.opening import open_data
from newkind.data.parquet_images import ParquetImages, read_parquet_images
from newkind.data.splits import ClassSplit, Division, class_split, divide, labelled_subset
from newkind.data.tables import read_table
from newkind.data.tars import TarImages, read_tars
from newkind.data.torchvision_dataset import from_torchvision
from newkind.data.truth_table import read_truth

__all__ = [
    "BENCHMARKS",
    "ArrayImages",
    "Benchmark",
    "BoxImages",
    "Catalog",
    "ClassSplit",
    "Collection",
    "DatasetImages",
    "Division",
    "EncodedImages",
    "Features",
    "FileImages",
    "ImageFiles",
    "Images",
    "Inspection",
    "Labels",
    "Names",
    "ParquetImages",
    "Skipped",
    "TarImages",
    "Truth",
    "class_split",
    "divide",
    "encode_labels",
    "encode_truth",
    "find_images",
    "find_obstacles",
    "from_arrays",
    "from_features",
    "from_torchvision",
    "inspect_collection",
    "labelled_subset",
    "load_benchmark",
    "open_data",
    "printable",
    "read_boxes",
    "read_folder",
    "read_npy",
    "read_npz",
    "read_parquet_images",
    "read_table",
    "read_tars",
    "read_truth",
]
