"""Reading what users have: tables, arrays and folders of images, in batches, with every bad row named."""

from __future__ import annotations
