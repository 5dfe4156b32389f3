import IconPlayerStop from 'icon:player-stop'
import IconRefresh from 'icon:refresh'
import IconSend from 'icon:send'
import { Button, SimpleGrid, Stack, Text, Timeline } from '@mantine/core'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { Static } from 'typebox'
import { listDeadLetters, retryDeadLetter } from '../../../../src/contract/queue/dead-letters.js'
import type { Message } from '../../../../src/contract/queue/fields.js'
import { getMessage, listLogs } from '../../../../src/contract/queue/messages.js'
import { CALM_MS, LIVE_MS, useApi, useChange, WATCH_MS } from '../../api/hooks.js'
import { useCanWrite, useSettings } from '../../api/session.js'
import { Fact } from '../../components/copy.js'
import { CopyMenu } from '../../components/copy-menu.js'
import { Page, Panel } from '../../components/page.js'
import { PayloadView } from '../../components/payload.js'
import { EmptyState, Loaded, LoadingLines } from '../../components/states.js'
import { Status } from '../../components/status.js'
import { UndoButton } from '../../components/undo.js'
import { When } from '../../components/when.js'
import { serverMs } from '../../lib/clock.js'
import { dateTime, delayText, duration, retriesText } from '../../lib/format.js'
import { headerLines, payloadOfBase64, payloadOfBody, payloadOfText } from '../../lib/payload.js'
import { withLocalTimes } from '../workflows/words.js'
import { type LogEntry, messagesOf, standingOf, wordsOf } from './message-log.js'
import { askCancel, undoOf } from './message-menu.js'
import { PublishForm } from './publish.js'
import { sendableOfMessage, valuesOfMessage } from './send-again.js'
import { COPIED, SNIPPET_TITLES, sendSnippets } from './snippets.js'

const route = getRouteApi('/shell/messages/$id')
const MAX_ENTRIES = 1_000

/** The page of one message: its content and its log. */
export function MessagePage() {
  const { id } = route.useParams()
  const log = useApi(
    listLogs,
    { query: { messageId: [id], order: 'earliestFirst', count: MAX_ENTRIES } },
    { everyMs: ({ logs }) => refreshOf(logs) },
  )
  return (
    <Page
      title={id}
      badge={<State entries={log.data?.logs} />}
      crumbs={[{ label: 'Messages', to: '/messages' }]}
      actions={<Actions entries={log.data?.logs} id={id} />}
    >
      <Loaded query={log} loading={<LoadingLines />}>
        {({ logs }) =>
          logs.length === 0 ? (
            <EmptyState title="Message not found">
              It may have been deleted: the configuration limits how long finished messages are kept.
            </EmptyState>
          ) : (
            <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
              <LogPanel entries={logs} />
              <Stack gap="lg">
                <Content id={id} isPending={isPending(logs)} />
              </Stack>
            </SimpleGrid>
          )
        }
      </Loaded>
    </Page>
  )
}

/** After a log entry, the next one is likely to follow within this time. */
const SOON_MS = 10_000

function refreshOf(entries: readonly LogEntry[]): number {
  if (!isPending(entries)) return CALM_MS
  const latest = messagesOf(entries)[0]?.latest
  return latest !== undefined && serverMs() - latest.time < SOON_MS ? WATCH_MS : LIVE_MS
}

/** Whether the message is pending, so that its log may grow. */
function isPending(entries: readonly LogEntry[]): boolean {
  const latest = messagesOf(entries)[0]?.latest
  return latest === undefined || standingOf(latest.state) === 'unfinished'
}

/** The state of the message: that of its latest log entry. */
function State({ entries }: { entries: readonly LogEntry[] | undefined }) {
  const latest = messagesOf(entries ?? [])[0]?.latest
  if (latest === undefined) return null
  const { tone, title } = wordsOf(latest.state)
  return <Status tone={tone}>{title}</Status>
}

function Actions({ id, entries }: { id: string; entries: readonly LogEntry[] | undefined }) {
  const canWrite = useCanWrite()
  const navigate = useNavigate()
  const latest = messagesOf(entries ?? [])[0]?.latest
  if (latest === undefined) return null
  const standing = standingOf(latest.state)
  return (
    <>
      <SendAgain id={id} canWrite={canWrite} />
      {standing === 'failed' ? (
        <>
          <Button variant="default" onClick={() => void navigate({ to: '/dead-letters', search: { url: latest.url } })}>
            Show the dead letters of this URL
          </Button>
          {canWrite ? <RetryButton id={id} /> : null}
        </>
      ) : null}
      {canWrite && standing === 'unfinished' ? (
        <Button color="red.9" leftSection={<IconPlayerStop size={16} />} onClick={() => askCancel(id)}>
          Cancel the message
        </Button>
      ) : null}
      {canWrite && standing === 'canceled' ? <UndoButton undo={undoOf(id)} /> : null}
    </>
  )
}

/** Copies the message as a command, or opens the form with its content. */
function SendAgain({ id, canWrite }: { id: string; canWrite: boolean }) {
  const { data: message } = useApi(getMessage, read(id))
  const { queue_url } = useSettings()
  const [isOpen, setOpen] = useState(false)
  if (message === undefined) return null
  // The form supports only text.
  const canEdit = canWrite && message.bodyBase64 === undefined
  return (
    <>
      <CopyMenu titles={SNIPPET_TITLES} of={() => sendSnippets(sendableOfMessage(message), queue_url)} done={COPIED} />
      {canEdit ? (
        <Button variant="default" leftSection={<IconSend size={16} />} onClick={() => setOpen(true)}>
          Publish again…
        </Button>
      ) : null}
      {isOpen ? <PublishForm isOpen initial={valuesOfMessage(message)} onClose={() => setOpen(false)} /> : null}
    </>
  )
}

/** Sends the dead letter of a message again. The dead letter no longer exists once it was sent again or deleted. */
function RetryButton({ id }: { id: string }) {
  const navigate = useNavigate()
  const letters = useApi(listDeadLetters, { query: { messageId: [id], count: 1, source: 'message' } })
  const retry = useChange(retryDeadLetter, {
    refreshes: [listDeadLetters, listLogs],
    done: 'A new message was published.',
    onDone: ({ messageId }) => void navigate({ to: '/messages/$id', params: { id: messageId } }),
  })
  const letter = letters.data?.messages[0]
  if (letter === undefined) return null
  return (
    <Button
      leftSection={<IconRefresh size={16} />}
      loading={retry.isPending}
      onClick={() => retry.mutate({ params: { dlqId: letter.dlqId } })}
    >
      Send the message again
    </Button>
  )
}

function LogPanel({ entries }: { entries: readonly LogEntry[] }) {
  const last = entries.at(-1)
  return (
    <Panel title="Log">
      <Timeline active={entries.length} bulletSize={14} lineWidth={2}>
        {entries.map((entry, index) => (
          <Timeline.Item
            // biome-ignore lint/suspicious/noArrayIndexKey: entries are only ever added at the end.
            key={index}
            title={<Status tone={wordsOf(entry.state).tone}>{wordsOf(entry.state).title}</Status>}
          >
            <LogEntryView entry={entry} before={entries[index - 1]} isLast={entry === last} />
          </Timeline.Item>
        ))}
      </Timeline>
    </Panel>
  )
}

/** One log entry: its time, its meaning, and the response of the destination. */
function LogEntryView({ entry, before, isLast }: { entry: LogEntry; before: LogEntry | undefined; isLast: boolean }) {
  const { state, time, nextDeliveryTime } = entry
  return (
    <Stack gap={6} pb="xs">
      <Text size="xs" c="dimmed">
        {dateTime(time)}
        {before === undefined ? '' : ` · ${duration(Math.max(0, time - before.time))} later`}
      </Text>
      {isLast ? <Text size="sm">{wordsOf(state).means}</Text> : null}
      {isLast && nextDeliveryTime !== undefined ? (
        <Text size="sm">
          Next try <When atMs={nextDeliveryTime} />.
        </Text>
      ) : null}
      {repeats(entry, before) ? null : <Answer entry={entry} />}
    </Stack>
  )
}

/** Whether an entry repeats the response of the entry before it: a retry does, and the failure after the last attempt. */
const repeats = ({ state }: LogEntry, before: LogEntry | undefined): boolean =>
  state === 'RETRY' || (state === 'FAILED' && before?.state === 'ERROR')

/** The response of the destination. */
function Answer({ entry: { time, responseStatus, responseBody = '', error } }: { entry: LogEntry }) {
  const outcome = responseStatus === undefined ? error : `The destination responded with ${responseStatus}.`
  return (
    <>
      {outcome === undefined ? null : <Text size="sm">{outcome}</Text>}
      {responseBody === '' ? null : (
        <PayloadView payload={payloadOfBase64(responseBody)} label={`Response at ${dateTime(time)}`} />
      )}
    </>
  )
}

/** A message, cancelled or not. */
const read = (messageId: string) => ({ params: { messageId }, query: { cancelled: true } })

/** The content of a message. It may be megabytes, so it is refreshed only while the message may still wait. */
function Content({ id, isPending }: { id: string; isPending: boolean }) {
  const message = useApi(getMessage, read(id), { everyMs: isPending ? LIVE_MS : undefined })
  return (
    <Loaded query={message} loading={<LoadingLines />}>
      {(found) => (
        <>
          <WhyItWaits because={found.because} />
          <Details message={found} />
          <Panel title="Body">
            <PayloadView
              payload={payloadOfBody(found.body, found.bodyBase64)}
              label="Message body"
              empty="The message has no body."
            />
          </Panel>
          <Panel title="Headers">
            <PayloadView
              payload={payloadOfText(headerLines(found.header))}
              label="Message headers"
              empty="No headers."
            />
          </Panel>
        </>
      )}
    </Loaded>
  )
}

/** The settings of the message that keep it waiting. */
function WhyItWaits({ because = [] }: Pick<Static<typeof Message>, 'because'>) {
  if (because.length === 0) return null
  return (
    <Panel title="Why it waits">
      {because.map(({ kind, text }) => (
        <Text key={kind} size="sm" style={{ overflowWrap: 'anywhere' }}>
          {withLocalTimes(text)}
        </Text>
      ))}
    </Panel>
  )
}

function Details({ message }: { message: Static<typeof Message> }) {
  const optional: readonly (readonly [string, string | number | undefined])[] = [
    ['URL group', message.topicName],
    ['Queue', message.queueName],
    ['Schedule', message.scheduleId],
    ['Labels', message.labels?.join(', ')],
    ['Flow-control key', message.flowControlKey],
    ['Priority', message.priority === undefined ? undefined : `${message.priority} s`],
    ['Debounce key', message.debounceKey],
    ['Singleton key', message.singletonKey],
    ['Callback', message.callback],
    ['Failure callback', message.failureCallback],
    ['Retry delay', delayText(message.retryDelayExpression)],
    ['Timeout', message.timeout === undefined ? undefined : duration(message.timeout)],
    ['Published from', message.callerIP],
  ]
  return (
    <Panel title="Details">
      <Fact name="Destination" copy={message.url}>
        {message.url}
      </Fact>
      <Fact name="ID" copy={message.messageId}>
        {message.messageId}
      </Fact>
      <Fact name="Method">{message.method}</Fact>
      <Fact name="Published">{dateTime(message.createdAt)}</Fact>
      <Fact name="Retries">{retriesText(message.maxRetries)}</Fact>
      {optional.map(([name, value]) =>
        value === undefined || value === '' ? null : (
          <Fact key={name} name={name}>
            {value}
          </Fact>
        ),
      )}
    </Panel>
  )
}
