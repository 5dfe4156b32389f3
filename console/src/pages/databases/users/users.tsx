import IconPlus from 'icon:plus'
import IconUsers from 'icon:users'
import { Alert, Badge, Button, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { type AclSecrets, type AclUser, isBuiltIn } from '../../../../../src/contract/databases/acl-users.js'
import type { DatabaseRecord } from '../../../../../src/contract/databases/databases.js'
import type { DataPlane } from '../../../api/data-plane.js'
import { CALM_MS } from '../../../api/hooks.js'
import { CellButton } from '../../../components/cell-buttons.js'
import { confirm } from '../../../components/confirm.js'
import { type Column, DataTable } from '../../../components/data-table.js'
import { TextLink } from '../../../components/link.js'
import { Panel } from '../../../components/page.js'
import { RowMenu } from '../../../components/row-menu.js'
import { EmptyState, Loaded, LoadingLines } from '../../../components/states.js'
import { Status } from '../../../components/status.js'
import { useDataPlane } from '../use-data-plane.js'
import { commandsText } from './acl.js'
import { deleteUser, readUsers, refreshUsers, renewSecrets, usersKey } from './changes.js'
import { NewSecrets } from './secrets.js'
import { type Editing, UserForm } from './user-form.js'

/** The users of a database and their rights. */
export function UsersTab({ database }: { database: DatabaseRecord }) {
  const plane = useDataPlane(database)
  if (plane.canWrite) return <Users database={database} plane={plane} />
  return (
    <Panel>
      <EmptyState title="This key is read-only" icon={IconUsers}>
        Only keys with full access may see and change database users.
      </EmptyState>
    </Panel>
  )
}

function Users({ database, plane }: { database: DatabaseRecord; plane: DataPlane }) {
  const [editing, setEditing] = useState<Editing | undefined>()
  const [made, setMade] = useState<AclSecrets | undefined>()
  const isFree = database.type === 'free'
  const users = useQuery({
    queryKey: usersKey(plane),
    queryFn: () => readUsers(plane),
    refetchInterval: CALM_MS,
  })
  return (
    <Stack gap="lg">
      {isFree ? <PaidOnly id={database.database_id} /> : null}
      <Panel
        flush
        title="Users"
        about="Each user has its own passwords and rights. They apply in every region, to connections and to REST."
        actions={
          isFree ? null : (
            <Button size="compact-sm" leftSection={<IconPlus size={14} />} onClick={() => setEditing({ kind: 'new' })}>
              Create a user
            </Button>
          )
        }
      >
        <Loaded query={users} loading={<LoadingLines count={3} />}>
          {(rows) => (
            <DataTable
              label="Users"
              columns={columnsFor(plane, (user) => setEditing({ kind: 'change', user }), setMade)}
              rows={rows}
              rowKey={({ name }) => name}
            />
          )}
        </Loaded>
      </Panel>
      {editing === undefined ? null : (
        <UserForm plane={plane} editing={editing} onClose={() => setEditing(undefined)} onMade={setMade} />
      )}
      <NewSecrets database={database} made={made} onClose={() => setMade(undefined)} />
    </Stack>
  )
}

function PaidOnly({ id }: { id: string }) {
  return (
    <Alert color="gray" title="More users need a paid plan">
      Every database has the two built-in users.{' '}
      <TextLink to="/databases/$id" params={{ id }} search={{ tab: 'settings' }}>
        Change the plan
      </TextLink>{' '}
      to create more.
    </Alert>
  )
}

const patternsText = (patterns: readonly string[]): string => (patterns.length === 0 ? 'none' : patterns.join(' '))

function columnsFor(
  plane: DataPlane,
  onEdit: (user: AclUser) => void,
  onMade: (made: AclSecrets) => void,
): Column<AclUser>[] {
  return [
    { key: 'name', title: 'Name', render: (user) => <Name user={user} onEdit={onEdit} /> },
    {
      key: 'state',
      title: 'State',
      width: '110px',
      render: ({ isOn }) => <Status tone={isOn ? 'ok' : 'idle'}>{isOn ? 'Enabled' : 'Disabled'}</Status>,
    },
    { key: 'commands', title: 'Commands', width: '26%', from: 'xs', render: commandsText },
    { key: 'keys', title: 'Keys', from: 'sm', render: ({ keys }) => patternsText(keys) },
    { key: 'channels', title: 'Channels', from: 'md', render: ({ channels }) => patternsText(channels) },
    {
      key: 'actions',
      title: '',
      width: '60px',
      align: 'right',
      render: (user) =>
        isBuiltIn(user) ? null : <Actions plane={plane} user={user} onEdit={onEdit} onMade={onMade} />,
    },
  ]
}

function Name({ user, onEdit }: { user: AclUser; onEdit: (user: AclUser) => void }) {
  if (!isBuiltIn(user)) return <CellButton onClick={() => onEdit(user)}>{user.name}</CellButton>
  return (
    <>
      <Text size="sm" span mr={6}>
        {user.name}
      </Text>
      <Badge color="gray">built in</Badge>
    </>
  )
}

interface ActionsProps {
  readonly plane: DataPlane
  readonly user: AclUser
  readonly onEdit: (user: AclUser) => void
  readonly onMade: (made: AclSecrets) => void
}

function Actions({ plane, user, onEdit, onMade }: ActionsProps) {
  const { name } = user
  const askRenew = () =>
    confirm({
      title: `Reset the password of ${name}`,
      text: 'Its old passwords and REST tokens stop working. Open connections stay open.',
      action: 'Reset the password',
      onConfirm: async () => {
        onMade(await renewSecrets(plane, name))
        await refreshUsers(plane)
      },
    })
  const askDelete = () =>
    confirm({
      title: `Delete the user ${name}`,
      text: 'Its connections are closed, and its passwords and REST tokens stop working.',
      action: 'Delete the user',
      onConfirm: async () => {
        await deleteUser(plane, name)
        await refreshUsers(plane)
      },
    })
  return (
    <RowMenu
      of={name}
      actions={[
        { label: 'Change the rights', onClick: () => onEdit(user) },
        { label: 'Reset the password', onClick: askRenew },
        { label: 'Delete the user', onClick: askDelete, isDangerous: true },
      ]}
    />
  )
}
