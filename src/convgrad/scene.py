"""A small picture that looks like a photograph, made from nothing but a few lines of geometry.

Edges, blur and sharpening want an image with light and shade.  This one is rendered: two balls
on a chequered table before a wall, lit by one lamp, each pixel the mean of several rays.

>>> picture = photograph(40)
>>> picture.shape, int(picture.min()) >= 0, int(picture.max()) <= 255
((40, 40), True, True)
"""

from __future__ import annotations

import numpy as np

__all__ = ["photograph"]

_CAMERA = np.array([0.0, 1.7, -5.2])
_LAMP = np.array([-3.2, 4.6, -3.4])
_BALLS = (  # centre, radius, how much light it gives back, how glossy it is
    (np.array([-0.55, 1.0, 0.2]), 1.0, 0.88, 0.5),
    (np.array([1.15, 0.55, -0.75]), 0.55, 0.42, 0.9),
)
_WALL = 3.0  # distance along z
_RAYS = 4  # in each direction within a pixel


def photograph(size: int = 40) -> np.ndarray:
    """Grey values of a square picture, whole numbers from 0 (black) to 255, (size, size) float64.

    Whole numbers, so that sums of products with whole or dyadic kernels are exact.

    >>> bool((photograph(16) == photograph(16)).all())
    True
    """
    fine = size * _RAYS
    at = (np.arange(fine) + 0.5) / fine - 0.5
    across, down = np.meshgrid(at, at)  # pixels, rows first
    rays = np.stack([across * 0.78, -down * 0.78 - 0.17, np.ones_like(across)], axis=-1)
    light = _seen(rays / np.linalg.norm(rays, axis=-1, keepdims=True))
    mean = light.reshape(size, _RAYS, size, _RAYS).mean(axis=(1, 3))
    return np.round(255 * np.clip(mean, 0, 1) ** (1 / 2.2))  # as a camera writes it


def _seen(rays: np.ndarray) -> np.ndarray:
    """The light that comes back along each ray, (rows, cols)."""
    light = _flat(rays)
    nearest = np.full(rays.shape[:2], np.inf)
    for centre, radius, albedo, gloss in _BALLS:
        distance = _hits(_CAMERA, rays, centre, radius)
        ahead = distance < nearest
        point = _CAMERA + np.where(ahead, distance, 0)[..., None] * rays
        normal = (point - centre) / radius
        shaded = albedo * _lit(point, normal) + gloss * _glint(point, normal, rays)
        light = np.where(ahead, shaded, light)
        nearest = np.where(ahead, distance, nearest)
    return light


def _flat(rays: np.ndarray) -> np.ndarray:
    """Table and wall."""
    to_table = np.where(rays[..., 1] < 0, -_CAMERA[1] / np.minimum(rays[..., 1], -1e-9), np.inf)
    to_wall = (_WALL - _CAMERA[2]) / rays[..., 2]
    table = to_table < to_wall
    point = _CAMERA + np.where(table, to_table, to_wall)[..., None] * rays
    chequer = (np.floor(point[..., 0] / 0.8) + np.floor(point[..., 2] / 0.8)) % 2
    albedo = np.where(table, 0.16 + 0.5 * chequer, 0.36)
    normal = np.where(table[..., None], [0.0, 1.0, 0.0], [0.0, 0.0, -1.0])
    return albedo * _lit(point, normal)


def _lit(point: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """How bright a matt surface is: the lamp where it is seen, and a little from around."""
    to_lamp = _LAMP - point
    far = np.linalg.norm(to_lamp, axis=-1, keepdims=True)
    to_lamp = to_lamp / far
    facing = np.maximum((normal * to_lamp).sum(-1), 0)
    start = point + 1e-3 * normal
    shadow = np.zeros(point.shape[:2], bool)
    for centre, radius, *_ in _BALLS:
        shadow |= _hits(start, to_lamp, centre, radius) < far[..., 0]
    return 0.12 + 1.05 * np.where(shadow, 0, facing)


def _glint(point: np.ndarray, normal: np.ndarray, rays: np.ndarray) -> np.ndarray:
    """The lamp's reflection."""
    to_lamp = _LAMP - point
    half = to_lamp / np.linalg.norm(to_lamp, axis=-1, keepdims=True) - rays
    half /= np.linalg.norm(half, axis=-1, keepdims=True)
    return np.maximum((normal * half).sum(-1), 0) ** 40


def _hits(start: np.ndarray, rays: np.ndarray, centre: np.ndarray, radius: float) -> np.ndarray:
    """Distance along each ray to a ball, inf where it passes by."""
    towards = centre - start
    along = (towards * rays).sum(-1)
    inside = radius**2 - ((towards**2).sum(-1) - along**2)
    distance = along - np.sqrt(np.maximum(inside, 0))
    return np.where((inside > 0) & (distance > 0), distance, np.inf)
