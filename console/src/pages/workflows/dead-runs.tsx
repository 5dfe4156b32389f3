import IconRosetteDiscountCheck from 'icon:rosette-discount-check'
import { Group, Stack } from '@mantine/core'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import type { Static } from 'typebox'
import type { RunDeadLetter } from '../../../../src/contract/queue/fields.js'
import { FAILURE_STATES, listDeadRuns } from '../../../../src/contract/workflow/dead-letters.js'
import { CALM_MS, useApiPages } from '../../api/hooks.js'
import { Fact } from '../../components/copy.js'
import type { Column } from '../../components/data-table.js'
import { FilterField } from '../../components/filter-field.js'
import { TextLink } from '../../components/link.js'
import { EmptyState } from '../../components/states.js'
import { Status } from '../../components/status.js'
import { When } from '../../components/when.js'
import { dateTime } from '../../lib/format.js'
import { given, statusOf } from '../../lib/search.js'
import { ToWizard } from '../bulk/to-wizard.js'
import { LetterPayloads } from '../queue/letter-payloads.js'
import { answerOf, failedAtMs } from '../queue/letters.js'
import { LETTERS_PAGE, LettersPage } from '../queue/letters-page.js'
import { FilterBar, MomentField } from './filters.js'
import { ReviveButtons } from './run-actions.js'
import { type DeadRunSearch, deadRunQueryOf } from './search.js'
import { FAILURE_WORDS } from './words.js'

type Letter = Static<typeof RunDeadLetter>

const route = getRouteApi('/shell/runs/dead-letters')

const WHOLE_SET = [
  ['resumeRuns', 'Resume many…'],
  ['restartRuns', 'Restart many…'],
  ['retryFailureCallbacks', 'Call failure functions again…'],
  ['deleteDeadRuns', 'Delete many…'],
] as const

/** Runs that have failed and can be taken up again. */
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
      about="Runs whose last retry has failed. Mend the endpoint, then resume them where they stood, or restart them from the start."
      pages={pages}
      columns={columnsFor}
      filters={<Filters search={search} />}
      empty={{ filtered: 'No failed run is like this', whole: <NoneFailed /> }}
      isFiltered={Object.keys(search).length > 0}
      wholeSet={<WholeSet search={search} />}
      drawerTitle="A failed run"
      letter={(shown) => <LetterBody {...shown} />}
    />
  )
}

const columnsFor = () => COLUMNS

const NoneFailed = () => (
  <EmptyState title="No run has failed" icon={IconRosetteDiscountCheck}>
    A run comes here when a delivery has used up its retries, or the program said that it failed. There is nothing to
    do.
  </EmptyState>
)

/** To the wizard with everything that the filters leave. */
function WholeSet({ search }: { search: DeadRunSearch }) {
  const { id, ...filters } = search
  // A bulk action does not know the beginning of an id: without it the set would be wider than what is shown.
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
          <FilterField label="Run id begins" width={140} value={id} onChange={(next) => set({ id: next })} />
          <FilterField label="Caller" width={110} value={caller} onChange={(next) => set({ caller: next })} />
          <FilterField
            label="Status"
            width={80}
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
  { key: 'failed', title: 'Failed', width: '130px', render: (letter) => <When atMs={failedAtMs(letter)} /> },
  {
    key: 'run',
    title: 'Run',
    render: ({ workflowRunId }) => (
      <TextLink to="/runs/$id" params={{ id: workflowRunId }}>
        {workflowRunId}
      </TextLink>
    ),
  },
  { key: 'url', title: 'Workflow', from: 'sm', render: ({ workflowUrl }) => workflowUrl },
  { key: 'answer', title: 'Answer', width: '90px', align: 'right', render: answerOf },
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
        <Fact name="Last answer">{answerOf(letter)}</Fact>
        <Fact name="Failure function">{failureWordsOf(letter)?.title ?? 'none'}</Fact>
      </div>
      <LetterPayloads
        letter={letter}
        said="What the endpoint said"
        sent="What was delivered"
        nothingSent="The delivery had no body."
      />
      {canWrite ? (
        <Group gap="xs">
          <ReviveButtons dlqId={letter.dlqId} onDeleted={onClose} />
        </Group>
      ) : null}
    </Stack>
  )
}
