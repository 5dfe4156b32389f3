import type { Static } from 'typebox'
import { undoCancelOfMessage } from '../../../../src/contract/bulk/undo.js'
import { listDeadLetters, retryDeadLetter } from '../../../../src/contract/queue/dead-letters.js'
import type { Message } from '../../../../src/contract/queue/fields.js'
import { cancelMessage, getMessage, listLogs } from '../../../../src/contract/queue/messages.js'
import { ApiError, api } from '../../api/client.js'
import { useTask } from '../../api/hooks.js'
import { useCanWrite, useSettings } from '../../api/session.js'
import { confirm } from '../../components/confirm.js'
import { type RowAction, RowMenu } from '../../components/row-menu.js'
import { askUndo, type Undo } from '../../components/undo.js'
import { copyText } from '../../lib/clipboard.js'
import { type MessageSummary, standingOf } from './message-log.js'
import { sendableOfMessage } from './send-again.js'
import { COPIED, SNIPPET_TITLES, sendSnippets } from './snippets.js'

/** Asks before a message is cancelled. */
export const askCancel = (messageId: string) =>
  confirm({
    title: 'Cancel this message',
    text: 'It is not sent any more. A request in flight is aborted and its response ignored. You can undo this as long as the message is kept.',
    action: 'Cancel the message',
    onConfirm: () => api(cancelMessage, { params: { messageId } }),
    refreshes: [listLogs, getMessage],
  })

/** The question that brings a cancelled message back. */
export const undoOf = (messageId: string): Undo => ({
  title: 'Undo the cancel of this message',
  text: 'It is pending again, with its body, its settings and its failed attempts. A request that was in flight is sent again.',
  action: 'Bring the message back',
  refreshes: [listLogs, getMessage],
  onAnswer: (body) => api(undoCancelOfMessage, { params: { messageId }, body }),
})

/** Sends the dead letter of a message again. */
async function retryOf(messageId: string): Promise<unknown> {
  const { messages } = await api(listDeadLetters, { query: { messageId: [messageId], count: 1, source: 'message' } })
  const [letter] = messages
  if (letter === undefined) throw new ApiError(404, 'The message was already sent again, or its dead letter deleted.')
  return api(retryDeadLetter, { params: { dlqId: letter.dlqId } })
}

/** The menu of a message in the list. */
export function MessageMenu({
  summary: { messageId, latest },
  onAgain,
}: {
  summary: MessageSummary
  /** Opens the form with the message. */
  onAgain: (message: Static<typeof Message>) => void
}) {
  const canWrite = useCanWrite()
  const { queue_url } = useSettings()
  const read = () => api(getMessage, { params: { messageId }, query: { cancelled: true } })
  const again = useTask(
    async () => {
      const message = await read()
      if (message.bodyBase64 === undefined) return message
      throw new ApiError(400, 'The body of this message is not text, so the form cannot show it. Copy it as curl.')
    },
    { onDone: onAgain },
  )
  const copy = useTask(
    async (title: string) => {
      const snippets = sendSnippets(sendableOfMessage(await read()), queue_url)
      await copyText(snippets.find((one) => one.title === title)?.code ?? '')
    },
    { done: COPIED },
  )
  const retry = useTask(() => retryOf(messageId), {
    refreshes: [listDeadLetters, listLogs],
    done: 'A new message was published.',
  })
  const standing = standingOf(latest.state)
  const writing: RowAction[] = [
    ...(standing === 'failed' ? [{ label: 'Send the message again', onClick: () => retry.mutate(undefined) }] : []),
    ...(standing === 'canceled' ? [{ label: 'Undo the cancel…', onClick: () => askUndo(undoOf(messageId)) }] : []),
    { label: 'Publish again…', onClick: () => again.mutate(undefined) },
    ...(standing === 'unfinished'
      ? [{ label: 'Cancel the message', onClick: () => askCancel(messageId), isDangerous: true }]
      : []),
  ]
  const copying = SNIPPET_TITLES.map((title) => ({ label: `Copy as ${title}`, onClick: () => copy.mutate(title) }))
  return <RowMenu of={messageId} actions={[...(canWrite ? writing : []), ...copying]} />
}
