import IconRosetteDiscountCheck from 'icon:rosette-discount-check'
import { Group, Stack, Text } from '@mantine/core'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import type { Static } from 'typebox'
import type { RunDeadLetter } from '../../../../src/contract/queue/fields.js'
import { FAILURE_STATES, listDeadRuns } from '../../../../src/contract/workflow/dead-letters.js'
import { CALM_MS, useApiPages } from '../../api/hooks.js'
import { CellButton } from '../../components/cell-buttons.js'
import { Fact } from '../../components/copy.js'
import type { Column } from '../../components/data-table.js'
import { FilterField } from '../../components/filter-field.js'
import { TextLink } from '../../components/link.js'
import { EmptyState } from '../../components/states.js'
import { Status } from '../../components/status.js'
import { UrlText } from '../../components/url-text.js'
import { When } from '../../components/when.js'
import { dateTime } from '../../lib/format.js'
import { given, STATUS_FORMAT, statusOf } from '../../lib/search.js'
import { ToWizard } from '../bulk/to-wizard.js'
import { LetterPayloads } from '../queue/letter-payloads.js'
import { answerOf, failedAtMs } from '../queue/letters.js'
import { LETTERS_PAGE, LettersPage } from '../queue/letters-page.js'
import { FilterBar, MomentField } from './filters.js'
import { RetryButtons } from './run-actions.js'
import { type DeadRunSearch, deadRunQueryOf } from './search.js'
import { FAILURE_WORDS } from './words.js'

type Letter = Static<typeof RunDeadLetter>

const route = getRouteApi('/shell/runs/dead-letters')

const WHOLE_SET = [
  ['resumeRuns', 'Resume in bulk…'],
  ['restartRuns', 'Restart in bulk…'],
  ['retryFailureCallbacks', 'Call failure functions in bulk…'],
  ['deleteDeadRuns', 'Delete in bulk…'],
] as const

/** Failed runs, which can be resumed or restarted. */
export function DeadRunsPage() {
  const search = route.useSearch()
  const pages = useApiPages(
    listDeadRuns,
    { query: { ...deadRunQueryOf(search), order: 'latestFirst', count: LETTERS_PAGE } },
    { everyMs: CALM_MS, next: ({ cursor }) => (cursor === undefined ? undefined : { cursor }) },
  )
  return (
    <LettersPage<Letter>
      title="Failed runs"
      about="Runs whose last retry failed. Fix the endpoint, then resume them at the failed step or restart them from the start."
      pages={pages}
      columns={columnsFor}
      filters={<Filters search={search} />}
      empty={<NoFailedRuns />}
      isFiltered={Object.keys(search).length > 0}
      wholeSet={<WholeSet search={search} />}
      drawerTitle="Failed run"
      letter={(shown) => <LetterBody {...shown} />}
    />
  )
}

const columnsFor = (onOpen: (letter: Letter) => void): readonly Column<Letter>[] => [
  {
    key: 'failed',
    title: 'Failed',
    width: '100px',
    render: (letter) => (
      <CellButton onClick={() => onOpen(letter)}>
        <When atMs={failedAtMs(letter)} />
      </CellButton>
    ),
  },
  ...COLUMNS,
]

const NoFailedRuns = () => (
  <EmptyState title="No failed runs" icon={IconRosetteDiscountCheck}>
    A run fails when a delivery has used up its retries, or when the workflow ends with a failure.
  </EmptyState>
)

/** Opens the wizard with the filters of the list. */
function WholeSet({ search }: { search: DeadRunSearch }) {
  const { id, ...filters } = search
  // Bulk actions cannot filter by a prefix of the ID, so the set would be larger than the list.
  return id === undefined ? <ToWizard kinds={WHOLE_SET} search={filters} /> : null
}

function Filters({ search }: { search: DeadRunSearch }) {
  const navigate = useNavigate()
  const set = (change: { readonly [Name in keyof DeadRunSearch]?: DeadRunSearch[Name] | undefined }) =>
    void navigate({ to: '/runs/dead-letters', search: given({ ...search, ...change }) as DeadRunSearch })
  const { id, caller, status, from, to } = search
  return (
    <FilterBar
      isMoreUsed={[id, caller, status, from, to].some((value) => value !== undefined)}
      more={
        <>
          <FilterField label="Run ID prefix" width={140} value={id} onChange={(next) => set({ id: next })} />
          <FilterField label="Caller" width={110} value={caller} onChange={(next) => set({ caller: next })} />
          <FilterField
            label="Status"
            width={80}
            format={STATUS_FORMAT}
            value={status?.toString()}
            onChange={(text) => set({ status: statusOf(text) })}
          />
          <MomentField label="From" value={from} onChange={(next) => set({ from: next })} />
          <MomentField label="To" value={to} onChange={(next) => set({ to: next })} />
        </>
      }
    >
      <FilterField label="Whole URL" isSearch value={search.url} onChange={(url) => set({ url })} />
      <FilterField label="Label" width={110} value={search.label} onChange={(label) => set({ label })} />
    </FilterBar>
  )
}

const failureWordsOf = ({ failureCallbackInfo }: Letter) => {
  const state = FAILURE_STATES.find((known) => known === failureCallbackInfo?.state)
  return state === undefined ? undefined : FAILURE_WORDS[state]
}

const COLUMNS: readonly Column<Letter>[] = [
  {
    key: 'run',
    title: 'Run',
    wraps: true,
    render: ({ workflowRunId, workflowUrl }) => (
      <>
        <TextLink to="/runs/$id" params={{ id: workflowRunId }} title={workflowRunId} className="truncate">
          {workflowRunId}
        </TextLink>
        <Text size="xs" c="dimmed" hiddenFrom="sm" component="div">
          <div className="truncate">
            <UrlText url={workflowUrl} />
          </div>
        </Text>
      </>
    ),
  },
  {
    key: 'url',
    title: 'Workflow',
    from: 'sm',
    wraps: true,
    render: ({ workflowUrl }) => <UrlText url={workflowUrl} />,
  },
  { key: 'answer', title: 'Response', width: '90px', align: 'right', render: answerOf },
  { key: 'label', title: 'Labels', width: '130px', from: 'md', render: ({ labels }) => labels?.join(', ') ?? '' },
  {
    key: 'failure',
    title: 'Failure function',
    width: '160px',
    from: 'lg',
    render: (letter) => {
      const words = failureWordsOf(letter)
      return words === undefined ? 'none' : <Status tone={words.tone}>{words.title}</Status>
    },
  },
]

function LetterBody({ letter, canWrite, onClose }: { letter: Letter; canWrite: boolean; onClose: () => void }) {
  return (
    <Stack gap="md">
      <div>
        <Fact name="Run">
          <TextLink to="/runs/$id" params={{ id: letter.workflowRunId }}>
            {letter.workflowRunId}
          </TextLink>
        </Fact>
        <Fact name="Workflow" copy={letter.workflowUrl}>
          {letter.workflowUrl}
        </Fact>
        <Fact name="Triggered">{dateTime(letter.workflowCreatedAt)}</Fact>
        <Fact name="Failed">{dateTime(failedAtMs(letter))}</Fact>
        <Fact name="Last response">{answerOf(letter)}</Fact>
        <Fact name="Failure function">{failureWordsOf(letter)?.title ?? 'none'}</Fact>
      </div>
      <LetterPayloads
        letter={letter}
        said="Response of the endpoint"
        sent="Delivered body"
        nothingSent="The delivery had no body."
      />
      {canWrite ? (
        <Group gap="xs">
          <RetryButtons dlqId={letter.dlqId} onDeleted={onClose} />
        </Group>
      ) : null}
    </Stack>
  )
}
