import IconBellRinging from 'icon:bell-ringing'
import { Drawer, Stack, Text } from '@mantine/core'
import { useMemo, useState } from 'react'
import { type Alert, listAlertHistory } from '../../../../../src/contract/alerts/alerts.js'
import { ALERT_WORDS, NOTIFICATION_WORDS } from '../../../../../src/contract/words/states.js'
import { CALM_MS, useApiPages } from '../../../api/hooks.js'
import { targetOf } from '../../../app/palette-items.js'
import { CellButton } from '../../../components/cell-buttons.js'
import { Fact } from '../../../components/copy.js'
import type { Column } from '../../../components/data-table.js'
import { TextLink } from '../../../components/link.js'
import { Panel } from '../../../components/page.js'
import { PagedTable } from '../../../components/paged-table.js'
import { StateOf } from '../../../components/state-of.js'
import { EmptyState } from '../../../components/states.js'
import { When } from '../../../components/when.js'
import { dateTime, whole } from '../../../lib/format.js'
import { ruleName } from './rule-name.js'

/** The stored alerts, newest first. */
export function AlertHistory() {
  const [open, setOpen] = useState<Alert | undefined>()
  const history = useApiPages(
    listAlertHistory,
    {},
    { everyMs: CALM_MS, next: ({ cursor }) => (cursor === undefined ? undefined : { cursor }) },
  )
  const columns = useMemo(() => columnsFor(setOpen), [])
  const rows = useMemo(() => history.data?.pages.flatMap((page) => page.alerts), [history.data])
  return (
    <Panel flush title="History">
      <PagedTable
        label="History"
        columns={columns}
        pages={history}
        rows={rows}
        rowKey={(alert) => alert.alert_id}
        onOpen={setOpen}
        empty={
          <EmptyState title="No alerts yet" icon={IconBellRinging}>
            Dead letters, failed runs, spent budgets and other events with a rule below are listed here.
          </EmptyState>
        }
      />
      <AlertDrawer alert={open} onClose={() => setOpen(undefined)} />
    </Panel>
  )
}

const columnsFor = (onOpen: (alert: Alert) => void): readonly Column<Alert>[] => [
  { key: 'when', title: 'When', width: '130px', render: (alert) => <When atMs={alert.last_at * 1000} /> },
  {
    key: 'what',
    title: 'What',
    render: (alert) => (
      <CellButton onClick={() => onOpen(alert)} title={alert.title}>
        {alert.title}
      </CellButton>
    ),
  },
  {
    key: 'status',
    title: 'Status',
    width: '120px',
    from: 'md',
    render: ({ status }) => <StateOf word={ALERT_WORDS[status]} />,
  },
  { key: 'count', title: 'Count', width: '90px', align: 'right', from: 'sm', render: (alert) => whole(alert.count) },
  {
    key: 'state',
    title: 'Notification',
    width: '140px',
    from: 'xs',
    render: ({ state }) => <StateOf word={NOTIFICATION_WORDS[state]} />,
  },
]

function AlertDrawer({ alert, onClose }: { alert: Alert | undefined; onClose: () => void }) {
  return (
    <Drawer opened={alert !== undefined} onClose={onClose} position="right" size="md" title={alert?.title}>
      {alert === undefined ? null : (
        <Stack gap="md">
          <Text size="sm">{alert.advice}</Text>
          <div>
            <Fact name="Rule">{ruleName(alert.kind)}</Fact>
            <Fact name="Subject" copy={alert.subject}>
              <Subject of={alert.subject} />
            </Fact>
            <Fact name="Status">{ALERT_WORDS[alert.status].word}</Fact>
            <Fact name="Count">{whole(alert.count)}</Fact>
            <Fact name="First">{dateTime(alert.first_at * 1000)}</Fact>
            <Fact name="Last">{dateTime(alert.last_at * 1000)}</Fact>
            <Fact name="Notification">{NOTIFICATION_WORDS[alert.state].word}</Fact>
          </div>
          <div>
            {alert.examples.map((example) => (
              <Fact key={`${example.at} ${example.id}`} name={dateTime(example.at * 1000)} copy={example.id}>
                <Occurrence id={example.id} text={example.text} />
              </Fact>
            ))}
          </div>
        </Stack>
      )}
    </Drawer>
  )
}

/** The format of the id of a database. */
const DATABASE_ID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/

/** The subject of an alert; a link if it is a database. */
function Subject({ of }: { of: string }) {
  if (!DATABASE_ID.test(of)) return of
  return (
    <TextLink to="/databases/$id" params={{ id: of }}>
      {of}
    </TextLink>
  )
}

/** An occurrence; a link to its message or run. */
function Occurrence({ id, text }: { id: string; text: string }) {
  const target = targetOf(id)
  if (target === undefined) return text
  return (
    <TextLink to={target.to} params={target.params}>
      {text}
    </TextLink>
  )
}
