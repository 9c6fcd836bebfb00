"""Readers of tables, arrays and folders of images, whole or in batches. Every bad row is named."""

from __future__ import annotations
