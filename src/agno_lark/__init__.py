"""The bridge between Feishu/Lark and Agno AgentOS."""

__version__ = "0.1.0"
