import IconCopy from 'icon:copy'
import { Button, Text } from '@mantine/core'
import {
  type DatabaseStandby,
  endDatabaseStandby,
  listDatabaseStandbys,
  MAX_STANDBYS,
  placeDatabaseStandby,
  placeDatabaseStandbys,
  removeDatabaseStandby,
  setDatabaseStandby,
} from '../../../../src/contract/server/standbys.js'
import { STANDBY_WORDS } from '../../../../src/contract/words/states.js'
import { api } from '../../api/client.js'
import { LIVE_MS, useApi, useTask } from '../../api/hooks.js'
import { useCanWrite } from '../../api/session.js'
import { confirm } from '../../components/confirm.js'
import { type Column, DataTable } from '../../components/data-table.js'
import { Panel } from '../../components/page.js'
import { RowMenu } from '../../components/row-menu.js'
import { StateOf } from '../../components/state-of.js'
import { EmptyState, Loaded, LoadingLines } from '../../components/states.js'
import { When } from '../../components/when.js'

/** The copies of databases on other nodes, for the operator of a cluster. */
export function StandbysPanel() {
  const canWrite = useCanWrite()
  const standbys = useApi(listDatabaseStandbys, {}, { everyMs: LIVE_MS })
  return (
    <Panel
      flush
      title="Standbys of databases"
      about="A standby is a copy on another node that follows the database all the time. If the node of the database is lost, the node of its most complete standby serves it after about 5 seconds."
      actions={canWrite && <PlaceAll />}
    >
      <Loaded query={standbys} loading={<LoadingLines />}>
        {(rows) => (
          <DataTable
            label="Standbys"
            columns={columnsFor(canWrite, rows)}
            rows={rows}
            rowKey={({ database_id, slot }) => `${database_id}/${slot}`}
            empty={
              <EmptyState title="No database has a standby" icon={IconCopy}>
                A database without one is unavailable while its node is lost.
              </EmptyState>
            }
          />
        )}
      </Loaded>
    </Panel>
  )
}

function PlaceAll() {
  const place = () =>
    confirm({
      title: 'Keep a standby of every database',
      text: 'Each database that has no standby gets a copy on another node of its region, which takes as much memory and disk there. Databases that are created later do not get one.',
      action: 'Keep the standbys',
      onConfirm: () => api(placeDatabaseStandbys, {}),
      refreshes: [listDatabaseStandbys],
    })
  return (
    <Button size="xs" variant="default" onClick={place}>
      Keep a standby of every database
    </Button>
  )
}

function columnsFor(canWrite: boolean, rows: readonly DatabaseStandby[]): Column<DatabaseStandby>[] {
  return [
    { key: 'database', title: 'Database', render: (standby) => <Name standby={standby} /> },
    { key: 'home', title: 'Home', width: '110px', from: 'sm', render: ({ home }) => home },
    { key: 'standby', title: 'Standby', width: '110px', from: 'sm', render: standbyText },
    {
      key: 'state',
      title: 'State',
      width: '120px',
      render: ({ state }) => <StateOf word={STANDBY_WORDS[state]} />,
    },
    { key: 'problem', title: 'Problem', from: 'md', render: ({ problem }) => problem },
    {
      key: 'answers',
      title: 'Replies',
      width: '160px',
      from: 'sm',
      render: ({ mode }) => (mode === 'replicated' ? 'wait for the copies' : 'at once'),
    },
    {
      key: 'until',
      title: 'Complete until',
      width: '140px',
      from: 'sm',
      render: ({ complete_until }) => (complete_until === 0 ? '' : <When atMs={complete_until} />),
    },
    {
      key: 'actions',
      title: '',
      width: '60px',
      align: 'right',
      render: (standby) => {
        const set = rows.filter((one) => one.database_id === standby.database_id)
        return canWrite ? <Actions standby={standby} set={set} /> : null
      },
    },
  ]
}

const standbyText = ({ standby }: DatabaseStandby): string => standby || 'none yet'

/** The database; on a phone with both nodes, which have no columns there. */
function Name({ standby }: { standby: DatabaseStandby }) {
  return (
    <>
      {standby.database_name}
      <Text size="xs" c="dimmed" hiddenFrom="sm" component="div">
        at {standby.home}, standby {standbyText(standby)}
      </Text>
    </>
  )
}

interface ActionsProps {
  readonly standby: DatabaseStandby
  /** All standbys of the database. */
  readonly set: readonly DatabaseStandby[]
}

function Actions({ standby: row, set }: ActionsProps) {
  const { database_name: name, standby, mode } = row
  const change = useTask((wanted: Wanted) => changeSet(set, wanted), {
    refreshes: [listDatabaseStandbys],
    done: ({ done }) => done,
  })
  const toMode: Wanted & { label: string } =
    mode === 'replicated'
      ? { label: 'Reply at once', body: { mode: 'async' }, done: `Replies of ${name} are sent at once.` }
      : {
          label: 'Reply when the copies have the writes',
          body: { mode: 'replicated' },
          done: `Replies of ${name} wait for its copies.`,
        }
  const more = { body: { copies: set.length + 1 }, done: `${name} gets another copy.` }
  return (
    <RowMenu
      of={set.length === 1 ? name : `${name} at ${standby || 'no node yet'}`}
      actions={[
        { label: toMode.label, onClick: () => change.mutate(toMode) },
        ...(set.length < MAX_STANDBYS ? [{ label: 'Keep another copy', onClick: () => change.mutate(more) }] : []),
        { label: 'End the standby', onClick: () => confirmEnd(row, set), isDangerous: true },
      ]}
    />
  )
}

/** A change of all standbys of a database, and the notification after it. */
interface Wanted {
  readonly body: { readonly mode?: DatabaseStandby['mode']; readonly copies?: number }
  readonly done: string
}

/** Changes the standbys of a database. If the operator has named a node for one, it stays named. */
async function changeSet(set: readonly DatabaseStandby[], wanted: Wanted): Promise<Wanted> {
  const id = set[0]?.database_id ?? ''
  const named = set.find(({ placement }) => placement === 'named')
  if (named) await api(setDatabaseStandby, { params: { id, name: named.standby }, body: wanted.body })
  else await api(placeDatabaseStandby, { params: { id }, body: wanted.body })
  return wanted
}

function confirmEnd(row: DatabaseStandby, set: readonly DatabaseStandby[]): void {
  const { database_id: id, database_name: name, standby } = row
  const others = set.length - 1
  const isLast = others === 0
  const left = isLast
    ? 'If the node of the database is lost, the database is unavailable until it returns.'
    : `${others === 1 ? 'One other copy stays' : `${others} other copies stay`}.`
  const end = (): Promise<unknown> => {
    if (isLast) return api(endDatabaseStandby, { params: { id } })
    // When the number of copies is reduced, a standby without a node ends first.
    if (standby === '') return changeSet(set, { body: { copies: others }, done: '' })
    return api(removeDatabaseStandby, { params: { id, name: standby } })
  }
  confirm({
    title: isLast ? `End the standby of ${name}` : `End one standby of ${name}`,
    text: `${standby || 'Its node'} deletes the copy. ${left}`,
    action: 'End the standby',
    onConfirm: end,
    refreshes: [listDatabaseStandbys],
  })
}
