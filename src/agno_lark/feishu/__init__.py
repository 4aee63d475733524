"""The wire to Feishu/Lark: events come in over the long connection, calls go out over the OpenAPI.

Enters: frames and answers as Feishu sends them. Leaves: frozen values (`Event`, `IncomingMessage`, ...), results of
calls, and `FeishuApiError`/`ConnectionRefused`. An event is acknowledged only after `accept` has returned, so what was
not accepted comes again; nothing here is written to disk and nothing survives a crash but Feishu's own redelivery.
Modules: events, text (pure reading) · frames, discovery, connection · api, tokens, codes, limits · proxy.
"""
