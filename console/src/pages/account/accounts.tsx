import IconPlus from 'icon:plus'
import IconUsers from 'icon:users'
import { Button } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { useState } from 'react'
import {
  deleteAccount,
  listAccounts,
  type ManagedAccount,
  type NewAccount,
  resumeAccount,
  suspendAccount,
} from '../../../../src/contract/accounts/operator.js'
import { ACCOUNT_WORDS } from '../../../../src/contract/words/states.js'
import { api } from '../../api/client.js'
import { useApi, useChange } from '../../api/hooks.js'
import { useCanWrite, useSession } from '../../api/session.js'
import { confirm } from '../../components/confirm.js'
import { type Column, DataTable } from '../../components/data-table.js'
import { Page, Panel } from '../../components/page.js'
import { type RowAction, RowMenu } from '../../components/row-menu.js'
import { ShownOnce } from '../../components/shown-once.js'
import { StateOf } from '../../components/state-of.js'
import { EmptyState, Loaded, LoadingLines } from '../../components/states.js'
import { When } from '../../components/when.js'
import { whole } from '../../lib/format.js'
import { CreateAccount, EditLimits } from './account-forms.js'

/** The accounts of the server, for its operator: create, limit, suspend, resume, delete. */
export function AccountsPage() {
  const { operator } = useSession()
  return operator === true ? <Accounts /> : <NotTheOperator />
}

function NotTheOperator() {
  return (
    <Page title="Accounts">
      <EmptyState title="Only the operator of the server manages accounts" icon={IconUsers}>
        Sign in with a key of the first account.
      </EmptyState>
    </Page>
  )
}

function Accounts() {
  const [isOpen, { open, close }] = useDisclosure()
  const [made, setMade] = useState<NewAccount | undefined>()
  const [edited, setEdited] = useState<ManagedAccount | undefined>()
  const canWrite = useCanWrite()
  const accounts = useApi(listAccounts, {})
  const create = canWrite ? (
    <Button leftSection={<IconPlus size={16} />} onClick={open}>
      Create an account
    </Button>
  ) : undefined
  return (
    <Page
      title="Accounts"
      about="Accounts have databases, a queue and teams of their own. You see that they exist, never their data."
      actions={create}
    >
      <Panel flush title="Accounts of this server">
        <Loaded query={accounts} loading={<LoadingLines />}>
          {(rows) => (
            <DataTable
              label="Accounts"
              columns={columnsFor(canWrite, setEdited)}
              rows={rows}
              rowKey={(account) => account.account_id}
              empty={<EmptyState title="No accounts" icon={IconUsers} action={create} />}
            />
          )}
        </Loaded>
      </Panel>
      <CreateAccount isOpen={isOpen} onClose={close} onMade={setMade} />
      {edited === undefined ? null : (
        <EditLimits key={edited.account_id} account={edited} onClose={() => setEdited(undefined)} />
      )}
      <ShownOnce
        title={`The credentials of ${made?.email ?? ''}`}
        secrets={[
          { label: 'API key', value: made?.api_key ?? '' },
          { label: 'Queue token', value: made?.queue_token ?? '' },
        ]}
        isOpen={made !== undefined}
        onClose={() => setMade(undefined)}
      />
    </Page>
  )
}

function columnsFor(canWrite: boolean, onEdit: (account: ManagedAccount) => void): Column<ManagedAccount>[] {
  return [
    { key: 'email', title: 'E-mail', render: ({ email }) => email },
    {
      key: 'type',
      title: 'Type',
      width: '130px',
      from: 'sm',
      render: ({ account_type, operator }) => (operator ? `${account_type}, operator` : account_type),
    },
    {
      key: 'state',
      title: 'State',
      width: '140px',
      render: ({ state }) => <StateOf word={ACCOUNT_WORDS[state]} />,
    },
    {
      key: 'databases',
      title: 'Databases',
      width: '120px',
      from: 'sm',
      align: 'right',
      render: ({ databases, database_limit: most }) => (most === undefined ? databases : `${databases} of ${most}`),
    },
    {
      key: 'messages',
      title: 'Messages a day',
      width: '140px',
      from: 'md',
      align: 'right',
      render: ({ daily_messages: most }) => (most === undefined ? 'default' : whole(most)),
    },
    { key: 'teams', title: 'Teams', width: '80px', from: 'md', align: 'right', render: ({ teams }) => teams },
    {
      key: 'created',
      title: 'Created',
      width: '130px',
      from: 'md',
      render: ({ creation_time }) => <When atMs={creation_time * 1000} />,
    },
    {
      key: 'actions',
      title: '',
      width: '60px',
      align: 'right',
      render: (account) => (canWrite && !account.operator ? <Actions account={account} onEdit={onEdit} /> : null),
    },
  ]
}

function Actions({ account, onEdit }: { account: ManagedAccount; onEdit: (account: ManagedAccount) => void }) {
  const { account_id: id, email, state } = account
  const resume = useChange(resumeAccount, { refreshes: [listAccounts], done: `${email} was resumed.` })
  const suspend = () =>
    confirm({
      title: `Suspend ${email}`,
      text: 'Its requests and the commands of its databases are refused, and none of its messages are delivered, until you resume it. Its data stays.',
      action: 'Suspend the account',
      onConfirm: () => api(suspendAccount, { params: { id } }),
      refreshes: [listAccounts],
    })
  const remove = () =>
    confirm({
      title: `Delete ${email}`,
      text: 'Its databases, backups, messages, runs, keys and the teams that it owns are deleted for good.',
      action: 'Delete the account',
      typed: email,
      onConfirm: () => api(deleteAccount, { params: { id } }),
      refreshes: [listAccounts],
    })
  const isDeleting = state === 'deleting'
  const actions: RowAction[] = [
    { label: 'Change the limits', onClick: () => onEdit(account), isDisabled: isDeleting },
    state === 'suspended'
      ? { label: 'Resume the account', onClick: () => resume.mutate({ params: { id } }) }
      : { label: 'Suspend the account', onClick: suspend, isDisabled: isDeleting },
    { label: 'Delete the account', onClick: remove, isDangerous: true },
  ]
  return <RowMenu of={email} actions={actions} />
}
