import IconListCheck from 'icon:list-check'
import IconSearch from 'icon:search'
import { Select } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useMemo } from 'react'
import type { Static } from 'typebox'
import { listBulkOutcomes } from '../../../../src/contract/bulk/actions.js'
import { CALM_MS, useApiPages } from '../../api/hooks.js'
import type { Column } from '../../components/data-table.js'
import { TextLink } from '../../components/link.js'
import { Panel } from '../../components/page.js'
import { PagedTable } from '../../components/paged-table.js'
import { EmptyState } from '../../components/states.js'
import { Status } from '../../components/status.js'
import { type Action, countsOf, isOver, OUTCOME_WORDS, type OutcomeName } from './words.js'

type Row = Static<(typeof listBulkOutcomes)['success']['body']>['outcomes'][number]

const PAGE = 200

/** The outcome of each item, page by page. */
export function Outcomes({ action, outcome }: { action: Action; outcome: OutcomeName | undefined }) {
  const pages = useApiPages(
    listBulkOutcomes,
    {
      params: { actionId: action.actionId },
      query: { count: PAGE, ...(outcome !== undefined && { outcome: [outcome] }) },
    },
    {
      everyMs: isOver(action) ? undefined : CALM_MS,
      next: ({ cursor }) => (cursor === undefined ? undefined : { cursor }),
    },
  )
  const rows = useMemo(() => pages.data?.pages.flatMap(({ outcomes }) => outcomes), [pages.data])
  return (
    <Panel flush title="Outcomes" actions={<OutcomeFilter action={action} outcome={outcome} />}>
      <PagedTable
        label="Outcomes"
        columns={COLUMNS}
        pages={pages}
        rows={rows}
        rowKey={(_, index) => String(index)}
        maxHeight="60dvh"
        empty={
          outcome === undefined ? (
            <EmptyState title="No items" icon={IconListCheck}>
              Nothing matched when the action started.
            </EmptyState>
          ) : (
            <EmptyState title="No items have this outcome" icon={IconSearch} />
          )
        }
      />
    </Panel>
  )
}

function OutcomeFilter({ action, outcome }: { action: Action; outcome: OutcomeName | undefined }) {
  const navigate = useNavigate()
  const names = countsOf(action).map(({ name }) => name)
  const offered = outcome === undefined || names.includes(outcome) ? names : [...names, outcome]
  const show = (next: string | null) => {
    const found = offered.find((name) => name === next)
    void navigate({
      to: '/bulk-actions/$id',
      params: { id: action.actionId },
      search: found === undefined ? {} : { outcome: found },
    })
  }
  return (
    <Select
      aria-label="Outcome"
      placeholder="All outcomes"
      size="xs"
      w={170}
      clearable
      data={offered.map((value) => ({ value, label: OUTCOME_WORDS[value].title }))}
      value={outcome ?? null}
      onChange={show}
    />
  )
}

const COLUMNS: readonly Column<Row>[] = [
  {
    key: 'outcome',
    title: 'Outcome',
    width: '150px',
    render: ({ outcome }) => <Status tone={OUTCOME_WORDS[outcome].tone}>{OUTCOME_WORDS[outcome].title}</Status>,
  },
  {
    key: 'item',
    title: 'Item',
    render: ({ workflowRunId, messageId, dlqId }) =>
      workflowRunId !== undefined ? (
        <TextLink to="/runs/$id" params={{ id: workflowRunId }}>
          {workflowRunId}
        </TextLink>
      ) : messageId !== undefined ? (
        <TextLink to="/messages/$id" params={{ id: messageId }}>
          {messageId}
        </TextLink>
      ) : (
        (dlqId ?? 'log deleted')
      ),
  },
  { key: 'error', title: 'Error', from: 'sm', render: ({ error }) => error ?? '' },
]
