import IconCopy from 'icon:copy'
import { Button } from '@mantine/core'
import {
  type DatabaseStandby,
  endDatabaseStandby,
  listDatabaseStandbys,
  placeDatabaseStandby,
  placeDatabaseStandbys,
  setDatabaseStandby,
} from '../../../../src/contract/server/standbys.js'
import { STANDBY_WORDS } from '../../../../src/contract/words/states.js'
import { api } from '../../api/client.js'
import { LIVE_MS, useApi, useChange } from '../../api/hooks.js'
import { useCanWrite } from '../../api/session.js'
import { confirm } from '../../components/confirm.js'
import { type Column, DataTable } from '../../components/data-table.js'
import { Panel } from '../../components/page.js'
import { RowMenu } from '../../components/row-menu.js'
import { StateOf } from '../../components/state-of.js'
import { EmptyState, Loaded, LoadingLines } from '../../components/states.js'
import { When } from '../../components/when.js'

/** The copies of databases on second nodes, for the operator of a cluster. */
export function StandbysPanel() {
  const canWrite = useCanWrite()
  const standbys = useApi(listDatabaseStandbys, {}, { everyMs: LIVE_MS })
  return (
    <Panel
      flush
      title="Standbys of databases"
      about="A standby is a copy on a second node that follows the database all the time. If the node of the database is lost, the node of the standby serves it after about 5 seconds."
      actions={canWrite && <PlaceAll />}
    >
      <Loaded query={standbys} loading={<LoadingLines />}>
        {(rows) => (
          <DataTable
            label="Standbys"
            columns={columnsFor(canWrite)}
            rows={rows}
            rowKey={(standby) => standby.database_id}
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
    <Button variant="default" onClick={place}>
      Keep a standby of every database
    </Button>
  )
}

function columnsFor(canWrite: boolean): Column<DatabaseStandby>[] {
  return [
    { key: 'database', title: 'Database', render: ({ database_name }) => database_name },
    { key: 'home', title: 'Home', width: '110px', render: ({ home }) => home },
    { key: 'standby', title: 'Standby', width: '110px', render: ({ standby }) => standby || 'none yet' },
    {
      key: 'state',
      title: 'State',
      width: '120px',
      render: ({ state }) => <StateOf word={STANDBY_WORDS[state]} />,
    },
    { key: 'problem', title: 'Problem', from: 'md', render: ({ problem }) => problem },
    {
      key: 'answers',
      title: 'Answers',
      width: '160px',
      from: 'sm',
      render: ({ mode }) => (mode === 'replicated' ? 'wait for the copy' : 'at once'),
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
      render: (standby) => (canWrite ? <Actions standby={standby} /> : null),
    },
  ]
}

function Actions({ standby: row }: { standby: DatabaseStandby }) {
  const { database_id: id, database_name: name, standby, placement, mode } = row
  const params = { id }
  const other = mode === 'replicated' ? 'async' : 'replicated'
  const said = {
    refreshes: [listDatabaseStandbys],
    done: other === 'replicated' ? `Answers of ${name} wait for its standby.` : `Answers of ${name} are sent at once.`,
  }
  const ofNamed = useChange(setDatabaseStandby, said)
  const ofChosen = useChange(placeDatabaseStandby, said)
  const change = () =>
    placement === 'named'
      ? ofNamed.mutate({ params: { id, name: standby }, body: { mode: other } })
      : ofChosen.mutate({ params, body: { mode: other } })
  const end = () =>
    confirm({
      title: `End the standby of ${name}`,
      text: `${standby || 'Its node'} deletes the copy. If the node of the database is lost, the database is unavailable until it returns.`,
      action: 'End the standby',
      onConfirm: () => api(endDatabaseStandby, { params }),
      refreshes: [listDatabaseStandbys],
    })
  const modeLabel = other === 'replicated' ? 'Answer when the copy has the writes' : 'Answer at once'
  return (
    <RowMenu
      of={name}
      actions={[
        { label: modeLabel, onClick: change },
        { label: 'End the standby', onClick: end, isDangerous: true },
      ]}
    />
  )
}
