"""The phrases themselves: key → language → sentence, with `{names}` for values."""

from collections.abc import Mapping

__all__ = ["PHRASES"]

PHRASES: Mapping[str, Mapping[str, str]] = {
    # the card of a turn
    "turn.thinking": {"en": "Thinking…", "zh": "思考中…"},
    "turn.stop": {"en": "Stop", "zh": "停止"},
    "turn.stopping": {"en": "Stopping…", "zh": "正在停止…"},
    "turn.steps": {"en": "Steps ({count})", "zh": "步骤（{count}）"},
    "turn.done": {"en": "Done", "zh": "已完成"},
    "turn.failed": {"en": "Failed", "zh": "失败"},
    "turn.cancelled": {"en": "Stopped", "zh": "已停止"},
    "turn.paused": {"en": "Waiting for a decision", "zh": "等待决定"},
    "turn.unknown": {"en": "Outcome unknown", "zh": "结果未知"},
    "turn.run": {"en": "run {run}", "zh": "运行 {run}"},
    "turn.tokens": {"en": "{count} tokens", "zh": "{count} tokens"},
    "turn.empty": {"en": "The run ended without any text.", "zh": "运行已结束，没有返回文字。"},
    "turn.taken_back": {
        "en": "Taken back by whoever runs this bot, before it was begun.",
        "zh": "在开始之前已被机器人管理员撤回。",
    },
    "turn.failed.hint": {"en": "Send /retry to ask again.", "zh": "发送 /retry 可重新提问。"},
    "turn.cancelled.body": {"en": "Stopped before there was an answer.", "zh": "在给出回答之前已停止。"},
    "turn.paused.body": {
        "en": "The run waits for a decision that this version cannot ask for yet: {kind}. Decide it in AgentOS, or "
        "write again to start a new run.",
        "zh": "运行正在等待一个当前版本还无法在此处理的决定：{kind}。请在 AgentOS 中处理，或再发一条消息重新开始。",
    },
    "turn.unknown.body": {
        "en": "The bridge, or its connection, was interrupted while your message was handed to the agent, so it "
        "cannot tell whether the agent got it. It was not sent a second time. Look whether anything was done before you ask again.",
        "zh": "把消息交给智能体时，桥接服务或连接被中断，无法确定智能体是否收到。消息没有再次发送。再次提问之前请先确认是否已有结果。",
    },
    "turn.unknown.begun": {
        "en": "The agent had begun to answer when the bridge, or its connection, was interrupted, so it cannot tell how "
        "that ended. It was not asked a second time. Look whether anything was done before you ask again.",
        "zh": "智能体已开始回答，但桥接服务或连接被中断，无法确定结果如何。没有再次提问。再次提问之前请先确认是否已有结果。",
    },
    "turn.unknown.superseded": {
        "en": "Stopped for your newer message, before it could be told whether the agent had got this one. It was asked to "
        "stop. Look whether anything was done before you ask again.",
        "zh": "因您的新消息而停止，当时无法确定智能体是否已收到这条消息。已请求其停止。再次提问之前请先确认是否已有结果。",
    },
    "turn.superseded": {"en": "Stopped for your newer message.", "zh": "因您的新消息而停止。"},
    "turn.stale": {"en": "Not run", "zh": "未运行"},
    "turn.stale.body": {
        "en": "You wrote this {when} ago, and it reached me only now. Perhaps its time has passed, so nothing was started.",
        "zh": "这条消息是您 {when}前发出的，我刚刚才收到。它可能已过时，所以没有开始运行。",
    },
    "turn.stale.asks": {"en": "Shall I answer it?", "zh": "需要我现在回答吗？"},
    "turn.answered_now": {"en": "Answered below.", "zh": "回答见下文。"},
    "turn.retry": {"en": "Ask again", "zh": "重新提问"},
    "turn.answer_now": {"en": "Answer now", "zh": "现在回答"},
    "turn.dismiss": {"en": "Dismiss", "zh": "忽略"},
    "turn.choices.text": {
        "en": "Send /retry to ask again, or /dismiss to leave it.",
        "zh": "发送 /retry 重新提问，或发送 /dismiss 忽略。",
    },
    "turn.retried": {"en": "Asked again: see the newer answer.", "zh": "已重新提问：请看新的回答。"},
    "turn.dismissed": {"en": "Left as it is.", "zh": "已忽略。"},
    "turn.heading.again": {
        "en": "Asked again; what came of it before is told above.",
        "zh": "已重新提问；此前的情况见上文。",
    },
    "turn.sent_again": {
        "en": "Feishu did not confirm this message when it was first sent; you may have seen it already.",
        "zh": "飞书没有确认这条消息的首次发送；您可能已经看到过。",
    },
    "reply.unreadable": {
        "en": "There is an answer, but this bot can no longer read it. Give this id to whoever runs it: {id}",
        "zh": "已有回答，但本机器人已无法读取。请把此编号告知机器人管理员：{id}",
    },
    "turn.not_shown": {
        "en": "There is an answer, but Feishu refused to show it in any form ({reason}). Give the run id to whoever runs "
        "this bot: {run}",
        "zh": "已有回答，但飞书拒绝以任何形式显示（{reason}）。请把运行编号告知机器人管理员：{run}",
    },
    "turn.more": {
        "en": "_The answer goes on; it will be complete when it is done._",
        "zh": "_回答还在继续，完成后会完整显示。_",
    },
    "turn.part": {"en": "Part {part} of {parts}", "zh": "第 {part} / {parts} 部分"},
    "turn.summary.running": {"en": "Answering…", "zh": "正在回答…"},
    # why a turn failed: what happened, and what to do
    "fault.unreachable": {
        "en": "The agent's server cannot be reached. Nothing was started. Try again in a moment; if it stays so, tell "
        "whoever runs this bot.",
        "zh": "无法连接智能体服务，任务没有开始。请稍后再试；如果一直如此，请告知机器人管理员。",
    },
    "fault.unauthorized": {
        "en": "The agent's server refused the bot's access. Tell whoever runs this bot: AGENTOS_TOKEN is wrong, or may "
        "not use this agent.",
        "zh": "智能体服务拒绝了机器人的访问。请告知机器人管理员：AGENTOS_TOKEN 不正确，或无权使用该智能体。",
    },
    "fault.not_found": {
        "en": "The agent this bot is set up for does not exist on its server. Tell whoever runs this bot: check "
        "AGENTOS_TARGET_TYPE and AGENTOS_TARGET_ID.",
        "zh": "智能体服务上没有这个机器人所配置的智能体。请告知机器人管理员：检查 AGENTOS_TARGET_TYPE 和 AGENTOS_TARGET_ID。",
    },
    "fault.invalid": {
        "en": "The agent's server did not accept this message. Try it in other words; if it stays so, tell whoever runs "
        "this bot.",
        "zh": "智能体服务没有接受这条消息。请换个说法再试；如果一直如此，请告知机器人管理员。",
    },
    "fault.conflict": {
        "en": "This run is being handled elsewhere. Wait for it, or send /new to begin anew.",
        "zh": "这次运行正在别处处理。请等待其结束，或发送 /new 重新开始。",
    },
    "fault.approval_pending": {
        "en": "This run still waits for an admin's approval on the agent's server. It goes on when that is given there.",
        "zh": "该运行仍在等待智能体服务端管理员的批准，批准后才会继续。",
    },
    "fault.busy": {
        "en": "The agent's server is too busy right now. Nothing was started. Try again in a minute.",
        "zh": "智能体服务目前过于繁忙，任务没有开始。请一分钟后再试。",
    },
    "fault.server_error": {
        "en": "The agent's server had an internal error. Try again; if it stays so, tell whoever runs this bot.",
        "zh": "智能体服务内部出错。请重试；如果一直如此，请告知机器人管理员。",
    },
    "fault.timeout": {
        "en": "The run has given no sign of life for too long, so nobody waits for it any more. It may still be going on: "
        "look whether anything was done before you ask again.",
        "zh": "运行长时间没有任何动静，已停止等待。它可能仍在进行：再次提问之前请先确认。",
    },
    "fault.lost": {
        "en": "The agent's server no longer works on this run, most likely because it was restarted in the middle: "
        "nothing more will come. What is above, if anything, is what had been written by then. Look whether anything was "
        "done already before you ask again.",
        "zh": "智能体服务已不再处理这次运行（很可能中途重启过），不会再有后续内容。上面如有内容，是当时已写出的部分。"
        "再次提问之前，请先确认是否已有操作完成。",
    },
    "fault.background_unsupported": {
        "en": "The agent cannot run in the background on its server. Tell whoever runs this bot: give the agent a "
        "database.",
        "zh": "该智能体无法在服务端后台运行。请告知机器人管理员：为智能体配置数据库。",
    },
    "fault.interrupted": {
        "en": "The connection to the agent's server broke, and this run cannot be picked up again. Ask again if you "
        "need the answer.",
        "zh": "与智能体服务的连接中断，且无法继续这次运行。如仍需要回答，请再问一次。",
    },
    "fault.protocol": {
        "en": "What answers at the configured address is no AgentOS. Tell whoever runs this bot: check AGENTOS_URL.",
        "zh": "所配置的地址上不是 AgentOS。请告知机器人管理员：检查 AGENTOS_URL。",
    },
    "fault.model_error": {
        "en": "The agent ran into an error. Ask again, or in other words; the details below help whoever runs it.",
        "zh": "智能体运行出错。请重试或换个说法；下面的详情可供管理员参考。",
    },
    "fault.internal": {
        "en": "Something went wrong in the bridge itself. Ask again; if it stays so, give the run id to whoever runs "
        "this bot.",
        "zh": "桥接服务自身出错。请重试；如果一直如此，请把运行编号告知机器人管理员。",
    },
    "fault.stop_unheard": {
        "en": "It was asked to stop, but the agent's server has given no sign of life since, so nobody waits for it any "
        "more. It may still be going on.",
        "zh": "已请求停止，但此后智能体服务没有任何动静，已不再等待。它可能仍在进行。",
    },
    "fault.details": {"en": "Details", "zh": "详情"},
    # commands
    "help.title": {"en": "What you can do here", "zh": "使用说明"},
    "help.body": {
        "en": "Just write; **{target}** answers. In a group, mention the bot first.\n\n"
        "- **/new** begins a new conversation: what was said before is left behind\n"
        "- **/status** shows what is running, waiting and just done\n"
        "- **/cancel** stops the newest run; **/cancel** _run id_ a particular one\n"
        "- **/retry** asks again what failed or was left open, **/dismiss** leaves it\n"
        "- **/help** shows this",
        "zh": "直接写消息即可，由 **{target}** 回答。在群里请先 @ 机器人。\n\n"
        "- **/new** 开始新的对话，之前的内容不再带入\n"
        "- **/status** 查看正在运行、等待和刚完成的任务\n"
        "- **/cancel** 停止最新的一次运行；**/cancel** _运行编号_ 停止指定的运行\n"
        "- **/retry** 重新提问失败或悬而未决的问题，**/dismiss** 则不再处理\n"
        "- **/help** 显示本说明",
    },
    "new.done": {
        "en": "A new conversation begins here. What was said before is left behind.",
        "zh": "新的对话从这里开始，之前的内容不再带入。",
    },
    "new.still_running": {
        "en": "A new conversation begins here. The run still under way ends in its own card.",
        "zh": "新的对话从这里开始。仍在进行的运行会在它自己的卡片中结束。",
    },
    "cancel.requested": {
        "en": "Stopping run {run}. Its card will say when it has ended.",
        "zh": "正在停止运行 {run}，结束后其卡片会更新。",
    },
    "cancel.nothing": {"en": "Nothing is running here.", "zh": "这里没有正在进行的运行。"},
    "cancel.not_found": {
        "en": "There is no active run {run} in this conversation. /status lists what there is.",
        "zh": "本对话中没有进行中的运行 {run}。发送 /status 可查看。",
    },
    "cancel.over": {"en": "This run has already ended.", "zh": "该运行已经结束。"},
    "cancel.foreign": {
        "en": "This run belongs to somebody else's conversation; only they can stop it.",
        "zh": "这是别人的对话中的运行，只有对方可以停止。",
    },
    "retry.done": {"en": "Asked again; the answer comes below.", "zh": "已重新提问，回答随后就到。"},
    "dismiss.done": {"en": "Left as it is.", "zh": "已忽略。"},
    "decide.nothing": {"en": "There is nothing to decide here.", "zh": "这里没有需要决定的事项。"},
    "decide.answered": {
        "en": "There is nothing to decide about run {run}: it has ended. Write again to ask again.",
        "zh": "运行 {run} 已结束，没有需要决定的事项。如需再问，请再发一条消息。",
    },
    "decide.already": {"en": "That has been decided already.", "zh": "此事已经处理过了。"},
    "decide.not_found": {
        "en": "There is no run {run} in this conversation. /status lists what there is.",
        "zh": "本对话中没有运行 {run}。发送 /status 可查看。",
    },
    "status.title": {"en": "Status", "zh": "状态"},
    "status.active": {"en": "**Running**", "zh": "**正在运行**"},
    "status.waiting": {"en": "**Waiting**", "zh": "**等待中**"},
    "status.recent": {"en": "**Recent**", "zh": "**最近**"},
    "status.nothing": {"en": "Nothing is running or waiting here.", "zh": "这里没有正在运行或等待的任务。"},
    "status.line": {"en": "- {state} · {when} ago · {run}", "zh": "- {state} · {when}前 · {run}"},
    "status.more": {"en": "- and {count} more", "zh": "- 另有 {count} 条"},
    "status.session": {
        "en": "Conversation no. {generation} with {target}",
        "zh": "与 {target} 的第 {generation} 次对话",
    },
    "run.waiting": {"en": "waiting", "zh": "等待中"},
    "run.submitted": {"en": "starting", "zh": "启动中"},
    "run.running": {"en": "running", "zh": "运行中"},
    "run.paused": {"en": "paused", "zh": "已暂停"},
    "run.completed": {"en": "done", "zh": "已完成"},
    "run.failed": {"en": "failed", "zh": "失败"},
    "run.cancelled": {"en": "stopped", "zh": "已停止"},
    "run.unknown": {"en": "unknown", "zh": "未知"},
    "run.stale": {"en": "not run: it came too late", "zh": "未运行：送达太晚"},
    "run.stopping": {"en": "stopping", "zh": "停止中"},
    # what is answered without a run
    "hint.command": {
        "en": "There is no command {given}. Did you mean {meant}? Send /help to see them all.",
        "zh": "没有 {given} 这个命令。您是想用 {meant} 吗？发送 /help 查看全部命令。",
    },
    "hint.arguments": {
        "en": "{command} takes {takes}. Send /help to see how commands are used.",
        "zh": "{command} 的用法：{takes}。发送 /help 查看命令说明。",
    },
    "hint.arguments.run": {"en": "at most one run id", "zh": "最多带一个运行编号"},
    "hint.empty": {
        "en": "Hello! Write your question, in a group after the mention, and I will pass it on.",
        "zh": "您好！请写下您的问题（在群里写在 @ 之后），我会转达。",
    },
    "hint.unsupported": {
        "en": "I can read text and rich text for now, but not this kind of message ({kind}). Please write it as text.",
        "zh": "目前我能读文字和富文本消息，还不能处理这类消息（{kind}）。请改用文字发送。",
    },
    "hint.denied": {
        "en": "You have no access to this bot yet. Give your id to whoever runs it, to be let in: {id}",
        "zh": "您还没有使用这个机器人的权限。请把您的 ID 告知机器人管理员以开通：{id}",
    },
    # toasts: the short answer to a click
    "toast.stopping": {"en": "Stopping…", "zh": "正在停止…"},
    "toast.retried": {"en": "Asked again", "zh": "已重新提问"},
    "toast.answering": {"en": "Answering it now", "zh": "现在开始回答"},
    "toast.dismissed": {"en": "Left as it is", "zh": "已忽略"},
    "toast.decided": {"en": "That has been decided already.", "zh": "此事已经处理过了。"},
    "toast.unknown": {
        "en": "This button belongs to something that is gone. Send /help to go on.",
        "zh": "这个按钮对应的内容已不存在。发送 /help 继续。",
    },
}
