import IconListCheck from 'icon:list-check'
import IconPlus from 'icon:plus'
import { Progress, Text } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'
import { listBulkActions } from '../../../../src/contract/bulk/actions.js'
import { selectorText } from '../../../../src/contract/words/selector.js'
import { LIVE_MS, useApiPages } from '../../api/hooks.js'
import { useCanWrite } from '../../api/session.js'
import type { Column } from '../../components/data-table.js'
import { ButtonLink, TextLink } from '../../components/link.js'
import { Page, Panel } from '../../components/page.js'
import { PagedTable } from '../../components/paged-table.js'
import { EmptyState } from '../../components/states.js'
import { Status } from '../../components/status.js'
import { When } from '../../components/when.js'
import { dateTime, whole } from '../../lib/format.js'
import { type Action, KIND_WORDS, STATE_WORDS } from './words.js'

const PAGE = 100

/** All stored bulk actions, newest first. */
export function BulkActionsPage() {
  const navigate = useNavigate()
  const canWrite = useCanWrite()
  const pages = useApiPages(
    listBulkActions,
    { query: { count: PAGE } },
    { everyMs: LIVE_MS, next: ({ cursor }) => (cursor === undefined ? undefined : { cursor }) },
  )
  const rows = useMemo(() => pages.data?.pages.flatMap(({ bulkActions }) => bulkActions), [pages.data])
  const begin = canWrite ? (
    <ButtonLink to="/bulk-actions/new" search={{ kind: 'cancelRuns' }} leftSection={<IconPlus size={16} />}>
      New bulk action
    </ButtonLink>
  ) : undefined
  return (
    <Page
      title="Bulk actions"
      about="A bulk action does the same to any number of runs, messages or dead letters. Its set is fixed when it starts, and it survives restarts."
      actions={begin}
    >
      <Panel flush>
        <PagedTable
          label="Bulk actions"
          columns={COLUMNS}
          pages={pages}
          rows={rows}
          rowKey={({ actionId }) => actionId}
          onOpen={({ actionId }) => void navigate({ to: '/bulk-actions/$id', params: { id: actionId } })}
          empty={
            <EmptyState title="No bulk actions yet" icon={IconListCheck} action={begin}>
              Select runs, messages or dead letters by URL, label or time, see how many match, and do the same to all of
              them.
            </EmptyState>
          }
        />
      </Panel>
    </Page>
  )
}

const COLUMNS: readonly Column<Action>[] = [
  {
    key: 'state',
    title: 'State',
    width: '105px',
    render: ({ state }) => <Status tone={STATE_WORDS[state].tone}>{STATE_WORDS[state].title}</Status>,
  },
  {
    key: 'kind',
    title: 'Action',
    render: ({ kind, actionId, createdAt }) => (
      <>
        <TextLink to="/bulk-actions/$id" params={{ id: actionId }}>
          {KIND_WORDS[kind].title}
        </TextLink>
        <Text size="xs" c="dimmed" hiddenFrom="sm">
          <When atMs={createdAt} />
        </Text>
      </>
    ),
  },
  {
    key: 'which',
    title: 'Selection',
    from: 'sm',
    wraps: true,
    render: (action) => {
      const text = selectorText(action, dateTime)
      return action.reason === undefined ? text : `${text}: “${action.reason}”`
    },
  },
  { key: 'done', title: 'Done', width: '115px', render: (action) => <Done action={action} /> },
  {
    key: 'failed',
    title: 'Failed',
    width: '75px',
    from: 'md',
    align: 'right',
    render: ({ failed }) => (failed > 0 ? whole(failed) : ''),
  },
  { key: 'who', title: 'Started by', width: '190px', from: 'lg', wraps: true, render: ({ createdBy }) => createdBy },
  {
    key: 'when',
    title: 'Started',
    width: '110px',
    from: 'sm',
    render: ({ createdAt }) => <When atMs={createdAt} />,
  },
]

function Done({ action: { done, matched, state } }: { action: Action }) {
  const text = `${whole(done)} of ${whole(matched)}`
  return state === 'finished' ? (
    text
  ) : (
    <>
      {text}
      <Progress value={matched === 0 ? 100 : (done / matched) * 100} size={4} mt={2} aria-label={`${text} done`} />
    </>
  )
}
