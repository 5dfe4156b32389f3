import IconServer from 'icon:server-2'
import {
  type ClusterNode,
  drainNode,
  listNodes,
  removeNode,
  resumeNode,
} from '../../../../src/contract/server/nodes.js'
import { NODE_WORDS } from '../../../../src/contract/words/states.js'
import { api } from '../../api/client.js'
import { LIVE_MS, useApi, useChange } from '../../api/hooks.js'
import { useCanWrite, useSession } from '../../api/session.js'
import { confirm } from '../../components/confirm.js'
import { type Column, DataTable } from '../../components/data-table.js'
import { Page, Panel } from '../../components/page.js'
import { type RowAction, RowMenu } from '../../components/row-menu.js'
import { StateOf } from '../../components/state-of.js'
import { EmptyState, Loaded, LoadingLines } from '../../components/states.js'
import { When } from '../../components/when.js'
import { bytes } from '../../lib/format.js'
import { StandbysPanel } from './standbys.js'

/** The nodes of the cluster, for its operator: drain, resume, remove. */
export function NodesPage() {
  const { operator } = useSession()
  return operator === true ? <Nodes /> : <NotTheOperator />
}

function NotTheOperator() {
  return (
    <Page title="Nodes">
      <EmptyState title="Only the operator of the server sees its nodes" icon={IconServer}>
        Sign in with a key of the first account.
      </EmptyState>
    </Page>
  )
}

function Nodes() {
  const canWrite = useCanWrite()
  const nodes = useApi(listNodes, {}, { everyMs: LIVE_MS })
  return (
    <Page
      title="Nodes"
      about="Nodes share the work of the queue, of workflows and of bulk actions. If one is lost, the others take over its share."
    >
      <Panel flush title="Nodes of this cluster">
        <Loaded query={nodes} loading={<LoadingLines />}>
          {(rows) => (
            <DataTable
              label="Nodes"
              columns={columnsFor(canWrite)}
              rows={rows}
              rowKey={(node) => node.name}
              empty={
                <EmptyState title="This server is alone" icon={IconServer}>
                  Several servers on one PostgreSQL database share the work when each is started with --node.
                </EmptyState>
              }
            />
          )}
        </Loaded>
      </Panel>
      {(nodes.data?.length ?? 0) > 0 && <StandbysPanel />}
    </Page>
  )
}

function columnsFor(canWrite: boolean): Column<ClusterNode>[] {
  return [
    { key: 'name', title: 'Node', render: ({ name, answering }) => (answering ? `${name} (serves this page)` : name) },
    {
      key: 'state',
      title: 'State',
      width: '100px',
      render: ({ state }) => <StateOf word={NODE_WORDS[state]} />,
    },
    { key: 'region', title: 'Region', width: '100px', from: 'sm', render: ({ region }) => region ?? 'all' },
    {
      key: 'databases',
      title: 'Databases',
      width: '95px',
      align: 'right',
      from: 'xs',
      render: ({ databases }) => databases,
    },
    {
      key: 'memory',
      title: 'Memory',
      width: '90px',
      align: 'right',
      from: 'sm',
      render: ({ engine_memory }) => (engine_memory === undefined ? '' : bytes(engine_memory)),
    },
    {
      key: 'partitions',
      title: 'Partitions',
      width: '95px',
      align: 'right',
      from: 'xs',
      render: ({ partitions }) => partitions,
    },
    { key: 'leader', title: 'Leader', width: '75px', from: 'sm', render: ({ leader }) => (leader ? 'yes' : '') },
    { key: 'address', title: 'Address', width: '125px', from: 'md', render: ({ address }) => address },
    { key: 'version', title: 'Version', width: '80px', from: 'md', render: ({ version }) => version },
    {
      key: 'started',
      title: 'Started',
      width: '95px',
      from: 'md',
      render: ({ start_time }) => <When atMs={start_time * 1000} />,
    },
    {
      key: 'actions',
      title: '',
      width: '3rem',
      align: 'right',
      render: (node) => (canWrite ? <Actions node={node} /> : null),
    },
  ]
}

function Actions({ node: { name, state } }: { node: ClusterNode }) {
  const params = { name }
  const resume = useChange(resumeNode, { refreshes: [listNodes], done: `${name} takes work again.` })
  const drain = () =>
    confirm({
      title: `Drain ${name}`,
      text: 'Its work goes to the other nodes, and it takes none until you resume or restart it.',
      action: 'Drain the node',
      onConfirm: () => api(drainNode, { params }),
      refreshes: [listNodes],
    })
  const remove = () =>
    confirm({
      title: `Remove ${name}`,
      text: 'It is no longer listed, and its name is free.',
      action: 'Remove the node',
      onConfirm: () => api(removeNode, { params }),
      refreshes: [listNodes],
    })
  const isRunning = state === 'live' || state === 'draining'
  const actions: RowAction[] = [
    state === 'draining'
      ? { label: 'Resume the node', onClick: () => resume.mutate({ params }) }
      : { label: 'Drain the node', onClick: drain, isDisabled: !isRunning },
    { label: 'Remove the node', onClick: remove, isDisabled: isRunning, isDangerous: true },
  ]
  return <RowMenu of={name} actions={actions} />
}
