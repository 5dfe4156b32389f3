import { Alert, Group, SimpleGrid, Text } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { listRuns } from '../../../../src/contract/workflow/runs.js'
import { LIVE_MS, useApi, WATCH_MS } from '../../api/hooks.js'
import { useCanWrite } from '../../api/session.js'
import { Fact } from '../../components/copy.js'
import { TextLink } from '../../components/link.js'
import { Page, Panel } from '../../components/page.js'
import { PayloadView } from '../../components/payload.js'
import { EmptyState, Loaded, LoadingLines } from '../../components/states.js'
import { Status } from '../../components/status.js'
import { When } from '../../components/when.js'
import { serverMs } from '../../lib/clock.js'
import { counted, dateTime, duration } from '../../lib/format.js'
import { payloadOfText } from '../../lib/payload.js'
import { RestartForm } from './restart.js'
import { type Restart, restartFrom } from './restart-form.js'
import { FailurePanel, RunActions } from './run-actions.js'
import { timelineOf } from './timeline.js'
import { TimelineView } from './timeline-view.js'
import { Waiting } from './waiting.js'
import { lastedMs, RUN_WORDS, type Run } from './words.js'

const route = getRouteApi('/shell/runs/$id')

/** The page of one run: its state and the reason, its timeline, its payload and its result. */
export function RunPage() {
  const { id } = route.useParams()
  const log = useApi(
    listRuns,
    { query: { workflowRunId: [id], count: 1, groupBy: 'workflowRunId' } },
    { everyMs: ({ runs: [run] }) => refreshOf(run) },
  )
  const run = log.data?.runs[0]
  return (
    <Page
      title={id}
      crumbs={[{ label: 'Runs', to: '/runs' }]}
      badge={run === undefined ? undefined : <RunStatus run={run} />}
      actions={run === undefined ? undefined : <RunActions run={run} />}
    >
      <Loaded query={log} loading={<LoadingLines />}>
        {() =>
          run === undefined ? (
            <EmptyState title="Run not found">
              It was never triggered, or its log was deleted: logs of ended runs are kept for as long as the
              configuration says.
            </EmptyState>
          ) : (
            <RunBody run={run} nowMs={serverMs(log.dataUpdatedAt)} />
          )
        }
      </Loaded>
    </Page>
  )
}

/** Kinds of reasons that last only a moment. */
const SHORT = new Set(['in-flight', 'queued'])

/** Refresh interval of a run; `undefined` if it has ended. It is longer for a run that sleeps or waits, maybe for days. */
function refreshOf(run: Run | undefined): number | undefined {
  if (run === undefined) return WATCH_MS
  if (run.workflowState !== 'RUN_STARTED')
    return run.failureFunction?.state === 'CALLBACK_INPROGRESS' ? WATCH_MS : undefined
  const waits = run.because
  if (waits === undefined || waits.some(({ kind }) => SHORT.has(kind))) return WATCH_MS
  const dueMs = Math.min(...waits.map(({ until, at }) => until ?? at ?? Number.POSITIVE_INFINITY))
  return Math.min(LIVE_MS, Math.max(WATCH_MS, dueMs - serverMs()))
}

function RunStatus({ run }: { run: Run }) {
  const { tone, title } = RUN_WORDS[run.workflowState]
  return <Status tone={tone}>{title}</Status>
}

function RunBody({ run, nowMs }: { run: Run; nowMs: number }) {
  const timeline = useMemo(() => timelineOf(run, nowMs), [run, nowMs])
  const canWrite = useCanWrite()
  const [plan, setPlan] = useState<Restart | undefined>()
  return (
    <>
      {run.because === undefined ? null : <Waiting run={run} reasons={run.because} canWrite={canWrite} />}
      <CancelledBy run={run} />
      <ReplacedBy run={run} />
      <BroughtBack run={run} />
      <FailurePanel run={run} />
      <Panel
        flush
        title="Timeline"
        about={`${counted(stepsOf(run), 'step')}, ${duration(lastedMs(run, nowMs))}. Open a step to see its input and output.`}
      >
        <TimelineView
          key={run.workflowRunId}
          timeline={timeline}
          runId={run.workflowRunId}
          onRestart={canWrite ? (step) => setPlan(restartFrom(run, step)) : undefined}
        />
      </Panel>
      {plan === undefined ? null : (
        <RestartForm runId={run.workflowRunId} plan={plan} onClose={() => setPlan(undefined)} />
      )}
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="lg">
        <Details run={run} />
        <Result run={run} />
      </SimpleGrid>
    </>
  )
}

/** The steps of the workflow, without the trigger and pending deliveries. */
const stepsOf = ({ steps }: Run): number =>
  steps.flatMap((group) => (group.type === 'next' ? [] : group.steps)).filter(({ stepType }) => stepType !== 'Initial')
    .length

function CancelledBy({ run: { canceledBy } }: { run: Run }) {
  if (canceledBy === undefined) return null
  const { actionId, actor, reason } = canceledBy
  return (
    <Alert color="gray" title="A bulk action cancelled this run">
      <Group gap={6}>
        <Text size="sm">
          {actor} started it{reason === undefined ? '.' : `: “${reason}”.`}
        </Text>
        <TextLink to="/bulk-actions/$id" params={{ id: actionId }}>
          Show the bulk action
        </TextLink>
      </Group>
    </Alert>
  )
}

function ReplacedBy({ run: { replacedBy, debounceKey, singletonKey } }: { run: Run }) {
  if (replacedBy === undefined) return null
  const key = debounceKey === undefined ? `singleton key “${singletonKey}”` : `debounce key “${debounceKey}”`
  return (
    <Alert color="gray" title="Another run replaced this one">
      <Group gap={6}>
        <Text size="sm">A newer trigger with the {key} cancelled it.</Text>
        <TextLink to="/runs/$id" params={{ id: replacedBy.workflowRunId }}>
          Show the other run
        </TextLink>
      </Group>
    </Alert>
  )
}

function BroughtBack({ run: { broughtBack } }: { run: Run }) {
  if (broughtBack === undefined) return null
  const { cancelledAt, at, actor, reason } = broughtBack
  return (
    <Alert color="gray" title="This run was cancelled and brought back">
      <Text size="sm">
        Cancelled {dateTime(cancelledAt)}, brought back {dateTime(at)}
        {actor === undefined ? '' : ` by ${actor}`}
        {reason === undefined ? '.' : `: “${reason}”.`}
      </Text>
    </Alert>
  )
}

function Result({ run: { workflowState, workflowRunResponse } }: { run: Run }) {
  if (workflowState !== 'RUN_SUCCESS') return null
  return (
    <Panel title="Result">
      <PayloadView payload={payloadOfText(workflowRunResponse ?? '')} label="Result of the run" empty="Nothing." />
    </Panel>
  )
}

function Details({ run }: { run: Run }) {
  const { invoker, origin, labels, workflowRunCompletedAt, flowControlKey, priority, workflowRunCallerIp } = run
  return (
    <Panel title="Details">
      <Fact name="Workflow" copy={run.workflowUrl}>
        {run.workflowUrl}
      </Fact>
      <Fact name="ID" copy={run.workflowRunId}>
        {run.workflowRunId}
      </Fact>
      <Fact name="Triggered">{dateTime(run.workflowRunCreatedAt)}</Fact>
      {workflowRunCallerIp === undefined ? null : <Fact name="Caller">{workflowRunCallerIp}</Fact>}
      {workflowRunCompletedAt === undefined ? null : (
        <Fact name="Ended">
          <When atMs={workflowRunCompletedAt} />, {dateTime(workflowRunCompletedAt)}
        </Fact>
      )}
      {labels === undefined ? null : (
        <Fact name="Labels">
          {labels.map((label) => (
            <TextLink key={label} to="/runs" search={{ label }} mr={8}>
              {label}
            </TextLink>
          ))}
        </Fact>
      )}
      {flowControlKey === undefined ? null : <Fact name="Flow-control key">{flowControlKey}</Fact>}
      {priority === undefined ? null : <Fact name="Priority">{priority} s</Fact>}
      {origin === undefined ? null : (
        <Fact name="Restarted from">
          <TextLink to="/runs/$id" params={{ id: origin.workflowRunId }}>
            {origin.workflowRunId}
          </TextLink>
          , step {origin.stepId}
        </Fact>
      )}
      {invoker === undefined ? null : (
        <Fact name="Invoked by">
          <TextLink to="/runs/$id" params={{ id: invoker.workflowRunId }}>
            {invoker.workflowRunId}
          </TextLink>
        </Fact>
      )}
      <Fact name="Same workflow">
        <TextLink to="/runs" search={{ url: run.workflowUrl }}>
          Runs of this workflow
        </TextLink>
      </Fact>
    </Panel>
  )
}
