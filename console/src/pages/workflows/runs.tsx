import IconBolt from 'icon:bolt'
import IconRoute from 'icon:route'
import { Button, Checkbox, Group, Text } from '@mantine/core'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { MAX_SORTED } from '../../../../src/contract/workflow/run-order.js'
import { listRuns } from '../../../../src/contract/workflow/runs.js'
import { CALM_MS, LIVE_MS, useApiPages } from '../../api/hooks.js'
import { useCanWrite } from '../../api/session.js'
import { OrCommand } from '../../components/copy.js'
import type { Column } from '../../components/data-table.js'
import { ButtonLink, TextLink } from '../../components/link.js'
import { Page, Panel } from '../../components/page.js'
import { foundSoFar, PagedTable, type Searched } from '../../components/paged-table.js'
import { orderText } from '../../components/sorting.js'
import { EmptyState, NoMatches } from '../../components/states.js'
import { Status } from '../../components/status.js'
import { UrlText } from '../../components/url-text.js'
import { useNow, When } from '../../components/when.js'
import { counted, dateTime, duration, whole } from '../../lib/format.js'
import { given } from '../../lib/search.js'
import { valuesOfRun } from '../queue/send-again.js'
import { PausedWorkflows } from './paused-workflows.js'
import { RunFilters } from './run-filters.js'
import { RunMenu } from './run-menu.js'
import { filterAndSort, isSortedByBrowser, orderQuery, runOrderOf, whyOf } from './run-order.js'
import { type RunSearch, runQueryOf } from './search.js'
import { TriggerForm } from './trigger.js'
import { lastedMs, RUN_WORDS, type Run } from './words.js'

const route = getRouteApi('/shell/runs')
const PAGE = 50

/** All stored runs, newest first unless sorted. */
export function RunsPage() {
  const { trigger: isTriggering, ...filters } = route.useSearch()
  const navigate = useNavigate()
  const canWrite = useCanWrite()
  const show = (search: RunSearch) => void navigate({ to: '/runs', search })
  const button = canWrite ? (
    <Button leftSection={<IconBolt size={16} />} onClick={() => show({ ...filters, trigger: true })}>
      Trigger a run
    </Button>
  ) : undefined
  return (
    <Page
      title="Runs"
      about="A run is one execution of a workflow. The server calls its endpoint step by step and resumes after crashes."
      actions={
        <>
          {canWrite && canBeCancelled(filters) ? <CancelLink filters={filters}>Cancel in bulk…</CancelLink> : null}
          {button}
        </>
      }
    >
      <PausedWorkflows canWrite={canWrite} />
      <Panel flush title="Runs" actions={<RunFilters filters={filters} onChange={show} />}>
        <List key={JSON.stringify({ ...filters, sort: undefined })} filters={filters} empty={button} onChange={show} />
      </Panel>
      <TriggerForm
        isOpen={isTriggering === true && canWrite}
        // Replaces the history entry, so that going back does not open the closed dialog again.
        onClose={() => void navigate({ to: '/runs', search: filters, replace: true })}
      />
    </Page>
  )
}

/** Whether a bulk action supports all set filters. Without the others, it would cancel more than the list shows. */
const canBeCancelled = ({ state, search, endedFrom, endedTo, took, waits }: RunSearch): boolean =>
  [search, endedFrom, endedTo, took, waits].every((filter) => filter === undefined) &&
  (state === undefined || state === 'RUN_STARTED')

/** Opens the wizard with the filters of the list; its time range excludes both ends. */
function CancelLink({ filters, children }: { filters: RunSearch; children: string }) {
  const { url, label, host, caller, flow, from, to, id } = filters
  const search = given({
    url,
    label,
    host,
    caller,
    flow,
    from: from === undefined ? undefined : from - 1,
    to: to === undefined ? undefined : to + 1,
    ids: id === undefined ? undefined : [id],
  })
  return (
    <ButtonLink
      variant="default"
      to="/bulk-actions/new"
      search={{ kind: 'cancelRuns', ...search, ...(url !== undefined && { exact: true }) }}
    >
      {children}
    </ButtonLink>
  )
}

interface ListProps {
  readonly filters: RunSearch
  /** Triggers the first run. */
  readonly empty: React.ReactNode
  readonly onChange: (filters: RunSearch) => void
}

/** The progress of a search in which the browser or the server tests runs one by one. */
function searchedOf(filters: RunSearch, loaded: readonly Run[], shown: number, toMs?: number): Searched | undefined {
  const endMs = toMs ?? loaded.at(-1)?.workflowRunCreatedAt
  if (filters.waits !== undefined)
    return {
      found: `${counted(shown, 'run')} of the newest ${whole(loaded.length)}; older ones are not searched yet`,
      toMs: endMs,
    }
  if (toMs !== undefined) return foundSoFar(counted(shown, 'run'), toMs)
  if (!isSortedByBrowser(filters)) return undefined
  const found = `Sorted by what they wait for: the ${counted(loaded.length, 'run')} loaded so far`
  return { found, toMs: undefined, onward: 'Load older runs' }
}

function List({ filters, empty, onChange }: ListProps) {
  const navigate = useNavigate()
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const [again, setAgain] = useState<Run | undefined>()
  const pages = useApiPages(
    listRuns,
    { query: { ...runQueryOf(filters), ...orderQuery(filters), count: PAGE, trimBody: 0, groupBy: 'workflowRunId' } },
    {
      everyMs: isCostly(filters) ? CALM_MS : LIVE_MS,
      next: ({ cursor }) => (cursor === undefined ? undefined : { cursor }),
    },
  )
  const loaded = useMemo(() => pages.data?.pages.flatMap(({ runs }) => runs), [pages.data])
  const { sort, waits } = filters
  const rows = useMemo(() => loaded && filterAndSort(loaded, given({ sort, waits })), [loaded, sort, waits])
  const order = runOrderOf(filters)
  const columns = useColumns(order?.by === 'ended' ? 'ended' : 'created', chosen, setChosen, setAgain)
  const sortedFrom = pages.data?.pages[0]?.sortedFrom
  return (
    <>
      {again === undefined ? null : (
        <TriggerForm isOpen initial={valuesOfRun(again)} onClose={() => setAgain(undefined)} />
      )}
      {chosen.size > 0 ? <Chosen ids={chosen} filters={filters} onClear={() => setChosen(new Set())} /> : null}
      {sortedFrom === undefined ? null : <SortedSome fromMs={sortedFrom} />}
      <PagedTable
        label="Runs"
        columns={columns}
        pages={pages}
        rows={rows}
        searched={loaded && rows && searchedOf(filters, loaded, rows.length, pages.data?.pages.at(-1)?.searchedTo)}
        order={order}
        onOrder={(order) => onChange({ ...filters, sort: orderText(order) })}
        rowKey={({ workflowRunId }) => workflowRunId}
        isSelected={({ workflowRunId }) => chosen.has(workflowRunId)}
        onOpen={({ workflowRunId }) => void navigate({ to: '/runs/$id', params: { id: workflowRunId } })}
        empty={
          Object.keys(filters).some((name) => name !== 'sort') ? (
            <NoMatches what="runs" />
          ) : (
            <EmptyState
              title="No runs yet"
              icon={IconRoute}
              action={
                empty && <OrCommand command="homeport runs trigger https://example.com/api/workflow">{empty}</OrCommand>
              }
            >
              Serve a workflow with <code>@upstash/workflow</code>, then trigger a run here or with the client of that
              package.
            </EmptyState>
          )
        }
      />
    </>
  )
}

/** Whether a page is expensive: for any order but that of creation, the server reads many runs. */
function isCostly(filters: RunSearch): boolean {
  const { sort = 'created' } = orderQuery(filters)
  return sort !== 'created'
}

/** Says which runs are sorted, if there are too many to sort all. */
function SortedSome({ fromMs }: { fromMs: number }) {
  return (
    <Text size="xs" c="dimmed" px="md" pb="xs" role="status">
      Only the newest {whole(MAX_SORTED)} runs are sorted and listed: those triggered since {dateTime(fromMs)}. For
      older ones, set “To” among the filters.
    </Text>
  )
}

/** The actions on the selected runs and on all matching runs. */
function Chosen({ ids, filters, onClear }: { ids: ReadonlySet<string>; filters: RunSearch; onClear: () => void }) {
  return (
    <Group px="md" py={8} gap="xs" bg="var(--hp-code)">
      <Text size="sm" fw={600} role="status">
        {counted(ids.size, 'run')} selected
      </Text>
      <ButtonLink size="compact-sm" to="/bulk-actions/new" search={{ kind: 'cancelRuns', ids: [...ids] }}>
        Cancel the selected runs…
      </ButtonLink>
      {canBeCancelled(filters) ? <CancelLink filters={filters}>Cancel all matching runs…</CancelLink> : null}
      <Button size="compact-sm" variant="subtle" onClick={onClear}>
        Clear
      </Button>
    </Group>
  )
}

/** The time of a run that the list shows. */
type ShownTime = 'created' | 'ended'

function useColumns(
  time: ShownTime,
  chosen: ReadonlySet<string>,
  choose: (ids: ReadonlySet<string>) => void,
  onAgain: (run: Run) => void,
) {
  const canWrite = useCanWrite()
  return useMemo((): readonly Column<Run>[] => {
    const toggle = (id: string) => {
      const next = new Set(chosen)
      if (!next.delete(id)) next.add(id)
      choose(next)
    }
    const tick: Column<Run> = {
      key: 'tick',
      title: '',
      spokenTitle: 'Selected',
      width: '44px',
      from: 'sm',
      render: ({ workflowRunId, workflowState }) =>
        workflowState === 'RUN_STARTED' ? (
          <Checkbox
            size="xs"
            aria-label={`Select ${workflowRunId}`}
            checked={chosen.has(workflowRunId)}
            onChange={() => toggle(workflowRunId)}
          />
        ) : null,
    }
    const menu: Column<Run> = {
      key: 'menu',
      title: '',
      width: '50px',
      from: 'sm',
      render: (run) => <RunMenu run={run} onAgain={onAgain} />,
    }
    return [...(canWrite ? [tick] : []), ...columnsWith(time), menu]
  }, [canWrite, time, chosen, choose, onAgain])
}

const columnsWith = (time: ShownTime): readonly Column<Run>[] => [
  {
    key: 'state',
    title: 'State',
    sorts: 'asc',
    width: '125px',
    render: ({ workflowState }) => {
      const { tone, title } = RUN_WORDS[workflowState]
      return <Status tone={tone}>{title}</Status>
    },
  },
  { key: 'id', title: 'Run', sorts: 'asc', wraps: true, render: (run) => <Name run={run} time={time} /> },
  {
    key: 'url',
    title: 'Workflow',
    sorts: 'asc',
    from: 'sm',
    wraps: true,
    render: ({ workflowUrl }) => <UrlText url={workflowUrl} />,
  },
  {
    key: 'label',
    title: 'Labels',
    sorts: 'asc',
    width: '95px',
    from: 'lg',
    wraps: true,
    render: ({ labels }) => labels?.join(', ') ?? '',
  },
  {
    key: 'waits',
    title: 'Waits for',
    sorts: 'asc',
    width: '125px',
    from: 'md',
    wraps: true,
    render: (run) => whyOf(run),
  },
  {
    key: 'duration',
    title: 'Took',
    sorts: 'desc',
    width: '85px',
    from: 'md',
    align: 'right',
    render: (run) => <Lasted run={run} />,
  },
  {
    key: time,
    title: TIME_TITLES[time],
    sorts: 'desc',
    width: '100px',
    from: 'sm',
    render: (run) => <Time run={run} time={time} />,
  },
]

const TIME_TITLES = { created: 'Triggered', ended: 'Ended' } as const

function Time({ run, time }: { run: Run; time: ShownTime }) {
  const atMs = time === 'ended' ? run.workflowRunCompletedAt : run.workflowRunCreatedAt
  return atMs === undefined ? null : <When atMs={atMs} />
}

/** The run; on a phone with its workflow and time, which have no columns there. */
function Name({ run, time }: { run: Run; time: ShownTime }) {
  const { workflowRunId, workflowUrl } = run
  return (
    <>
      <TextLink to="/runs/$id" params={{ id: workflowRunId }} title={workflowRunId} className="truncate">
        {workflowRunId}
      </TextLink>
      <Text size="xs" c="dimmed" hiddenFrom="sm" component="div">
        <div className="truncate">
          <UrlText url={workflowUrl} />
        </div>
        <Time run={run} time={time} />
      </Text>
    </>
  )
}

function Lasted({ run }: { run: Run }) {
  const now = useNow()
  return <>{duration(lastedMs(run, now))}</>
}
