import IconReportMoney from 'icon:report-money'
import { SimpleGrid, Stack } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { type DatabaseUsage, getUsage } from '../../../../src/contract/console/console.js'
import { CALM_MS, useApi } from '../../api/hooks.js'
import { useCanWrite } from '../../api/session.js'
import { type Column, DataTable } from '../../components/data-table.js'
import { Figure } from '../../components/figure.js'
import { ButtonLink, TextLink } from '../../components/link.js'
import { Page, Panel } from '../../components/page.js'
import { EmptyState, Loaded } from '../../components/states.js'
import { Status } from '../../components/status.js'
import { bytes, dollars, percent, short, whole } from '../../lib/format.js'

/** Refresh interval per database. The response lists every database, and there may be 10,000. */
const MS_A_ROW = 2

/** Usage and cost of all databases this month. */
export function UsagePage() {
  const usage = useApi(getUsage, {}, { everyMs: (rows) => Math.max(CALM_MS, rows.length * MS_A_ROW) })
  return (
    <Page
      title="Usage and cost"
      about="The current calendar month in UTC. The cost follows the plan prices of this server and counts against the budgets; there is no invoice."
    >
      <Loaded query={usage}>{(rows) => <Usage rows={rows} />}</Loaded>
    </Page>
  )
}

function Usage({ rows }: { rows: readonly DatabaseUsage[] }) {
  const navigate = useNavigate()
  const canWrite = useCanWrite()
  const sum = (of: (row: DatabaseUsage) => number): number => rows.reduce((total, row) => total + of(row), 0)
  return (
    <Stack gap="lg">
      <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="md">
        <Figure label="Cost this month" value={dollars(sum(({ cost }) => cost))} />
        <Figure label="Requests this month" value={short(sum(({ requests }) => requests))} />
        <Figure label="Data" value={bytes(sum(({ storage_bytes }) => storage_bytes))} />
      </SimpleGrid>
      <Panel flush title="By database" about="Most expensive first.">
        <DataTable
          label="Usage by database"
          columns={COLUMNS}
          rows={rows}
          rowKey={({ database_id }) => database_id}
          onOpen={({ database_id }) =>
            void navigate({ to: '/databases/$id', params: { id: database_id }, search: { tab: 'usage' } })
          }
          empty={
            <EmptyState
              title="No databases yet"
              icon={IconReportMoney}
              action={
                canWrite ? (
                  <ButtonLink to="/databases" search={{ create: true }}>
                    Create a database
                  </ButtonLink>
                ) : undefined
              }
            >
              The usage and cost of your databases will be listed here.
            </EmptyState>
          }
        />
      </Panel>
    </Stack>
  )
}

const COLUMNS: readonly Column<DatabaseUsage>[] = [
  {
    key: 'name',
    title: 'Database',
    render: ({ database_id, database_name }) => (
      <TextLink to="/databases/$id" params={{ id: database_id }} search={{ tab: 'usage' }}>
        {database_name}
      </TextLink>
    ),
  },
  {
    key: 'requests',
    title: 'Requests',
    width: '130px',
    align: 'right',
    from: 'xs',
    render: ({ requests }) => whole(requests),
  },
  {
    key: 'data',
    title: 'Data',
    width: '120px',
    align: 'right',
    from: 'sm',
    render: ({ storage_bytes }) => bytes(storage_bytes),
  },
  { key: 'cost', title: 'Cost', width: '110px', align: 'right', render: ({ cost }) => dollars(cost) },
  { key: 'budget', title: 'Budget', width: '210px', from: 'sm', render: (row) => <Budget row={row} /> },
]

function Budget({ row: { cost, budget } }: { row: DatabaseUsage }) {
  if (budget === 0) return <Status tone="idle">none</Status>
  const share = cost / budget
  const tone = share >= 1 ? 'bad' : share > 0.8 ? 'warn' : 'ok'
  return (
    <Status tone={tone}>
      {percent(share)} of {dollars(budget)}
    </Status>
  )
}
