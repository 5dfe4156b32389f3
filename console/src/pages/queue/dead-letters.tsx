import IconMailCheck from 'icon:mail-check'
import { Button, Group, Stack } from '@mantine/core'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import type { Static } from 'typebox'
import { deleteDeadLetter, listDeadLetters, retryDeadLetter } from '../../../../src/contract/queue/dead-letters.js'
import type { DeadLetter } from '../../../../src/contract/queue/fields.js'
import { listLogs } from '../../../../src/contract/queue/messages.js'
import { api } from '../../api/client.js'
import { CALM_MS, useApiPages, useChange } from '../../api/hooks.js'
import { CellButton } from '../../components/cell-buttons.js'
import { confirm } from '../../components/confirm.js'
import { Fact } from '../../components/copy.js'
import type { Column } from '../../components/data-table.js'
import { FilterGroup } from '../../components/filter-bar.js'
import { FilterField } from '../../components/filter-field.js'
import { TextLink } from '../../components/link.js'
import { EmptyState } from '../../components/states.js'
import { UrlText } from '../../components/url-text.js'
import { When } from '../../components/when.js'
import { dateTime } from '../../lib/format.js'
import { given, STATUS_FORMAT, statusOf } from '../../lib/search.js'
import { ToWizard } from '../bulk/to-wizard.js'
import { LetterPayloads } from './letter-payloads.js'
import { answerOf, failedAtMs } from './letters.js'
import { LETTERS_PAGE, LettersPage } from './letters-page.js'
import { type DeadSearch, filtersOf } from './search.js'

type Letter = Static<typeof DeadLetter>

const route = getRouteApi('/shell/dead-letters')

const queryOf = ({ status, ...search }: DeadSearch) => ({
  ...filtersOf(search),
  ...(status === undefined ? {} : { responseStatus: [status] }),
})

const WHOLE_SET = [
  ['retryDeadLetters', 'Send again in bulk…'],
  ['deleteDeadLetters', 'Delete in bulk…'],
] as const

/** Messages that could not be delivered. */
export function DeadLettersPage() {
  const search = route.useSearch()
  const pages = useApiPages(
    listDeadLetters,
    { query: { ...queryOf(search), order: 'latestFirst', count: LETTERS_PAGE, source: 'message' } },
    { everyMs: CALM_MS, next: ({ cursor }) => (cursor === undefined ? undefined : { cursor }) },
  )
  return (
    <LettersPage<Letter>
      title="Dead letters"
      about="Messages whose last retry failed. Fix the destination and send them again, or delete them."
      pages={pages}
      columns={columnsFor}
      filters={<Filters search={search} />}
      empty={<NoDeadLetters />}
      isFiltered={Object.keys(search).length > 0}
      wholeSet={<ToWizard kinds={WHOLE_SET} search={search} />}
      drawerTitle="Dead letter"
      letter={(shown) => <LetterBody {...shown} />}
    />
  )
}

const NoDeadLetters = () => (
  <EmptyState title="No dead letters" icon={IconMailCheck}>
    A message becomes a dead letter when its last retry fails.
  </EmptyState>
)

function Filters({ search }: { search: DeadSearch }) {
  const navigate = useNavigate()
  const set = (change: { readonly [Name in keyof DeadSearch]?: DeadSearch[Name] | undefined }) =>
    void navigate({ to: '/dead-letters', search: given({ ...search, ...change }) as DeadSearch })
  return (
    <FilterGroup>
      <FilterField label="Whole URL" isSearch value={search.url} onChange={(url) => set({ url })} />
      <FilterField label="Label" width={120} value={search.label} onChange={(label) => set({ label })} />
      <FilterField label="Queue" width={120} value={search.queue} onChange={(queue) => set({ queue })} />
      <FilterField
        label="Status"
        width={90}
        format={STATUS_FORMAT}
        value={search.status?.toString()}
        onChange={(text) => set({ status: statusOf(text) })}
      />
    </FilterGroup>
  )
}

const columnsFor = (onOpen: (letter: Letter) => void): readonly Column<Letter>[] => [
  { key: 'failed', title: 'Failed', width: '100px', render: (letter) => <When atMs={failedAtMs(letter)} /> },
  {
    key: 'url',
    title: 'Destination',
    render: (letter) => (
      <CellButton onClick={() => onOpen(letter)} title={letter.url}>
        <UrlText url={letter.url} />
      </CellButton>
    ),
  },
  { key: 'answer', title: 'Response', width: '90px', align: 'right', render: answerOf },
  { key: 'label', title: 'Labels', width: '140px', from: 'md', render: ({ labels }) => labels?.join(', ') ?? '' },
  { key: 'queue', title: 'Queue', width: '120px', from: 'lg', render: ({ queueName }) => queueName ?? '' },
]

function LetterBody({ letter, canWrite, onClose }: { letter: Letter; canWrite: boolean; onClose: () => void }) {
  const navigate = useNavigate()
  const retry = useChange(retryDeadLetter, {
    refreshes: [listDeadLetters, listLogs],
    done: 'A new message was published.',
    onDone: ({ messageId }) => void navigate({ to: '/messages/$id', params: { id: messageId } }),
  })
  const args = { params: { dlqId: letter.dlqId } }
  const askDelete = () =>
    confirm({
      title: 'Delete this dead letter',
      text: 'The message cannot be sent again. It stays in the log as failed.',
      action: 'Delete the dead letter',
      onConfirm: async () => {
        await api(deleteDeadLetter, args)
        onClose()
      },
      refreshes: [listDeadLetters],
    })
  return (
    <Stack gap="md">
      <div>
        <Fact name="Destination" copy={letter.url}>
          {letter.url}
        </Fact>
        <Fact name="Method">{letter.method}</Fact>
        <Fact name="Published">{dateTime(letter.createdAt)}</Fact>
        <Fact name="Failed">{dateTime(failedAtMs(letter))}</Fact>
        <Fact name="Last response">{answerOf(letter)}</Fact>
        <Fact name="Message" copy={letter.messageId}>
          <TextLink to="/messages/$id" params={{ id: letter.messageId }}>
            {letter.messageId}
          </TextLink>
        </Fact>
      </div>
      <LetterPayloads
        letter={letter}
        said="Response of the destination"
        sent="Message body"
        nothingSent="The message has no body."
      />
      {canWrite ? (
        <Group gap="xs">
          <Button loading={retry.isPending} onClick={() => retry.mutate(args)}>
            Send the message again
          </Button>
          <Button variant="default" onClick={askDelete}>
            Delete the dead letter
          </Button>
        </Group>
      ) : null}
    </Stack>
  )
}
