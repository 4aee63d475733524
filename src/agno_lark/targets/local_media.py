"""From our values to agno's, for runs in this process. Imports agno, so only inside the functions."""

from collections.abc import Mapping, Sequence
from typing import Any

from agno_lark.targets.event_data import mappings
from agno_lark.targets.protocol import Attachment, TargetType

__all__ = ["agno_media", "continue_arguments"]


def agno_media(attachments: Sequence[Attachment]) -> dict[str, Any]:
    """`images`, `audio`, `videos` and `files` of `arun`, each only when there is one."""
    if not attachments:
        return {}
    from agno.media import Audio, File, Image, Video

    found: dict[str, list[Any]] = {}
    for item in attachments:
        family = item.mime_type.split("/", 1)[0]
        match family:
            case "image":
                found.setdefault("images", []).append(Image(content=item.content, mime_type=item.mime_type))
            case "audio":
                found.setdefault("audio", []).append(Audio(content=item.content, mime_type=item.mime_type))
            case "video":
                found.setdefault("videos", []).append(Video(content=item.content, mime_type=item.mime_type))
            case _:
                known = item.mime_type if item.mime_type in File.valid_mime_types() else None
                found.setdefault("files", []).append(
                    File(content=item.content, mime_type=known, filename=item.name, name=item.name)
                )
    return found


def continue_arguments(target_type: TargetType, payload: Mapping[str, Any]) -> dict[str, Any]:
    """`/continue`'s fields (`tools`, `requirements`, `step_requirements`) as arguments of `acontinue_run`."""
    from agno.models.response import ToolExecution
    from agno.run.requirement import RunRequirement

    if target_type is TargetType.WORKFLOW:
        from agno.workflow.types import StepRequirement

        rows = mappings(payload.get("step_requirements"))
        return {"step_requirements": [StepRequirement.from_dict(dict(row)) for row in rows]} if rows else {}
    arguments: dict[str, Any] = {}
    if tools := mappings(payload.get("tools")):
        arguments["updated_tools"] = [ToolExecution.from_dict(dict(row)) for row in tools]
    if requirements := mappings(payload.get("requirements")):
        arguments["requirements"] = [RunRequirement.from_dict(dict(row)) for row in requirements]
    return arguments
