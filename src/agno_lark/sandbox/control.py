"""The control endpoint: everything `agno_lark.testing.FeishuSandbox` can do, over loopback HTTP."""

from fastapi import APIRouter

from agno_lark.sandbox.local_feishu import LocalFeishu

__all__ = ["control_router"]


def control_router(feishu: LocalFeishu) -> APIRouter:
    """None yet."""
    return APIRouter()
