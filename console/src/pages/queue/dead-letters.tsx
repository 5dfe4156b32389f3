import { Button, Drawer, Group, Stack, Text } from '@mantine/core'
import { IconMailCheck, IconSearch } from '@tabler/icons-react'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import type { Static } from 'typebox'
import { startBulkAction } from '../../../../src/contract/bulk.js'
import { listLogs } from '../../../../src/contract/queue.js'
import { deleteDeadLetter, listDeadLetters, retryDeadLetter } from '../../../../src/contract/queue-dead-letters.js'
import type { DeadLetter } from '../../../../src/contract/queue-fields.js'
import { api } from '../../api/client.js'
import { CALM_MS, useApiPages, useChange } from '../../api/hooks.js'
import { useCanWrite } from '../../api/session.js'
import { confirm } from '../../components/confirm.js'
import { Fact } from '../../components/copy.js'
import { type Column, DataTable } from '../../components/data-table.js'
import { Page, Panel } from '../../components/page.js'
import { PayloadView } from '../../components/payload.js'
import { EmptyState, ErrorState, LoadingLines } from '../../components/states.js'
import { When } from '../../components/when.js'
import { dateTime } from '../../lib/format.js'
import { payloadOfBase64, payloadOfText } from '../../lib/payload.js'
import { FilterField } from './filters.js'
import { type DeadSearch, filtersOf } from './search.js'

type Letter = Static<typeof DeadLetter>

const route = getRouteApi('/shell/dead-letters')
const PAGE = 100

/** When the last attempt of a letter failed: the first part of its id, Unix milliseconds. */
const failedAtMs = ({ dlqId }: Letter): number => Number(dlqId.split('-')[0])

const queryOf = ({ status, ...search }: DeadSearch) => ({
  ...filtersOf(search),
  ...(status === undefined ? {} : { responseStatus: [status] }),
})

/** Messages that could not be delivered. */
export function DeadLettersPage() {
  const search = route.useSearch()
  const canWrite = useCanWrite()
  const [open, setOpen] = useState<Letter | undefined>()
  const pages = useApiPages(
    listDeadLetters,
    { query: { ...queryOf(search), order: 'latestFirst', count: PAGE, source: 'message' } },
    { everyMs: CALM_MS, next: ({ cursor }) => (cursor === undefined ? undefined : { cursor }) },
  )
  const rows = useMemo(() => pages.data?.pages.flatMap(({ messages }) => messages), [pages.data])
  const isFiltered = Object.keys(search).length > 0
  return (
    <Page
      title="Dead letters"
      about="Messages whose last retry has failed. Mend the destination and send them again, or delete them."
      actions={canWrite && rows !== undefined && rows.length > 0 ? <WholeSet search={search} /> : undefined}
    >
      <Panel flush title="Dead letters" actions={<Filters search={search} />}>
        {pages.isPending ? <LoadingLines /> : null}
        {pages.isError ? <ErrorState error={pages.error} onRetry={() => void pages.refetch()} /> : null}
        {rows ? (
          <DataTable
            label="Dead letters"
            columns={COLUMNS}
            rows={rows}
            rowKey={({ dlqId }) => dlqId}
            onOpen={setOpen}
            onEnd={pages.hasNextPage && !pages.isFetching ? () => void pages.fetchNextPage() : undefined}
            empty={
              isFiltered ? (
                <EmptyState title="No dead letter is like this" icon={IconSearch}>
                  Change the filters, or take them away.
                </EmptyState>
              ) : (
                <EmptyState title="Every message has arrived" icon={IconMailCheck}>
                  A message comes here when its last retry has failed. There is nothing to do.
                </EmptyState>
              )
            }
          />
        ) : null}
      </Panel>
      <LetterDrawer letter={open} canWrite={canWrite} onClose={() => setOpen(undefined)} />
    </Page>
  )
}

function WholeSet({ search }: { search: DeadSearch }) {
  const isFiltered = Object.keys(search).length > 0
  const which = isFiltered ? 'all dead letters that the filters leave' : 'all dead letters'
  const navigate = useNavigate()
  // The server fixes the set first: page by page, what fails again would be met again.
  const start = async (kind: 'retryDeadLetters' | 'deleteDeadLetters') => {
    const { actionId } = await api(startBulkAction, { body: { kind, selector: queryOf(search) } })
    void navigate({ to: '/bulk-actions/$id', params: { id: actionId } })
  }
  const askRetry = () =>
    confirm({
      title: 'Send them again',
      text: `This makes a new message of ${which}, on this page and beyond.`,
      action: 'Send them again',
      onConfirm: () => start('retryDeadLetters'),
    })
  const askDelete = () =>
    confirm({
      title: 'Delete them',
      text: `This deletes ${which}, on this page and beyond.`,
      action: 'Delete them',
      typed: 'delete',
      onConfirm: () => start('deleteDeadLetters'),
    })
  return (
    <>
      <Button onClick={askRetry}>{isFiltered ? 'Send the filtered ones again' : 'Send all again'}</Button>
      <Button variant="default" onClick={askDelete}>
        {isFiltered ? 'Delete the filtered ones' : 'Delete all'}
      </Button>
    </>
  )
}

function Filters({ search }: { search: DeadSearch }) {
  const navigate = useNavigate()
  const set = (name: keyof DeadSearch, value: string | number | undefined) => {
    const { [name]: _before, ...rest } = search
    void navigate({
      to: '/dead-letters',
      search: (value === undefined ? rest : { ...rest, [name]: value }) as DeadSearch,
    })
  }
  const setStatus = (text: string | undefined) => {
    const status = Number(text ?? Number.NaN)
    set('status', Number.isInteger(status) ? status : undefined)
  }
  return (
    <Group gap="xs">
      <FilterField label="Whole URL" isSearch value={search.url} onChange={(value) => set('url', value)} />
      <FilterField label="Label" width={120} value={search.label} onChange={(value) => set('label', value)} />
      <FilterField label="Queue" width={120} value={search.queue} onChange={(value) => set('queue', value)} />
      <FilterField label="Status" width={90} value={search.status?.toString()} onChange={setStatus} />
    </Group>
  )
}

const answerOf = ({ responseStatus }: Letter): string => (responseStatus === 0 ? 'none' : String(responseStatus))

const COLUMNS: readonly Column<Letter>[] = [
  { key: 'failed', title: 'Failed', width: '140px', render: (letter) => <When atMs={failedAtMs(letter)} /> },
  { key: 'url', title: 'Destination', render: ({ url }) => url },
  { key: 'answer', title: 'Last answer', width: '110px', align: 'right', render: answerOf },
  { key: 'label', title: 'Labels', width: '140px', from: 'md', render: ({ labels }) => labels?.join(', ') ?? '' },
  { key: 'queue', title: 'Queue', width: '120px', from: 'lg', render: ({ queueName }) => queueName ?? '' },
]

function LetterDrawer({
  letter,
  canWrite,
  onClose,
}: {
  letter: Letter | undefined
  canWrite: boolean
  onClose: () => void
}) {
  return (
    <Drawer opened={letter !== undefined} onClose={onClose} position="right" size="lg" title="A dead letter">
      {letter === undefined ? null : <LetterBody letter={letter} canWrite={canWrite} onClose={onClose} />}
    </Drawer>
  )
}

function LetterBody({ letter, canWrite, onClose }: { letter: Letter; canWrite: boolean; onClose: () => void }) {
  const done = { refreshes: [listDeadLetters, listLogs], onDone: onClose }
  const retry = useChange(retryDeadLetter, { ...done, done: 'A new message is on its way.' })
  const remove = useChange(deleteDeadLetter, { ...done, done: 'The dead letter is deleted.' })
  const args = { params: { dlqId: letter.dlqId } }
  const { responseBody = '', responseBodyBase64, body = '', bodyBase64 } = letter
  return (
    <Stack gap="md">
      <div>
        <Fact name="Destination" copy={letter.url}>
          {letter.url}
        </Fact>
        <Fact name="Method">{letter.method}</Fact>
        <Fact name="Published">{dateTime(letter.createdAt)}</Fact>
        <Fact name="Failed">{dateTime(failedAtMs(letter))}</Fact>
        <Fact name="Last answer">{answerOf(letter)}</Fact>
        <Fact name="Message" copy={letter.messageId}>
          {letter.messageId}
        </Fact>
      </div>
      <Text fw={600} size="sm">
        What the destination said
      </Text>
      <PayloadView
        payload={responseBodyBase64 === undefined ? payloadOfText(responseBody) : payloadOfBase64(responseBodyBase64)}
        label="Last answer"
        empty="Nothing."
      />
      <Text fw={600} size="sm">
        Body of the message
      </Text>
      <PayloadView
        payload={bodyBase64 === undefined ? payloadOfText(body) : payloadOfBase64(bodyBase64)}
        label="Body of the message"
        empty="The message has no body."
      />
      {canWrite ? (
        <Group gap="xs">
          <Button loading={retry.isPending} onClick={() => retry.mutate(args)}>
            Send it again
          </Button>
          <Button variant="default" loading={remove.isPending} onClick={() => remove.mutate(args)}>
            Delete it
          </Button>
        </Group>
      ) : null}
    </Stack>
  )
}
