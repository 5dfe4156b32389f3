import IconPlus from 'icon:plus'
import IconUserPlus from 'icon:user-plus'
import IconUsers from 'icon:users'
import { Badge, Button, Group, Select, Stack, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useDisclosure } from '@mantine/hooks'
import { useNavigate } from '@tanstack/react-router'
import {
  ASSIGNABLE_ROLES,
  addTeamMember,
  createTeam,
  deleteTeam,
  listTeamMembers,
  listTeams,
  MAX_LABEL_LENGTH,
  removeTeamMember,
  type Team,
  type TeamMember,
  type TeamRole,
} from '../../../../src/contract/accounts/accounts.js'
import { api } from '../../api/client.js'
import { useApi, useChange } from '../../api/hooks.js'
import { useCanWrite, useSession } from '../../api/session.js'
import { CellActions } from '../../components/cell-buttons.js'
import { confirm } from '../../components/confirm.js'
import { type Column, DataTable } from '../../components/data-table.js'
import { FormDialog } from '../../components/form-dialog.js'
import { Page, Panel } from '../../components/page.js'
import type { RowAction } from '../../components/row-menu.js'
import { EmptyState, Loaded, LoadingLines } from '../../components/states.js'

const ROLE_TEXTS: Readonly<Record<TeamRole, string>> = {
  owner: 'owns the team and may delete it',
  admin: 'manages members, keys and databases',
  dev: 'manages databases',
  finance: 'reads only',
}

/** The teams of the signed-in user, each with its members. */
export function TeamsPage() {
  const [isOpen, { open, close }] = useDisclosure()
  const canWrite = useCanWrite()
  const { role } = useSession()
  const teams = useApi(listTeams, {})
  // A key of a team cannot create teams.
  const create =
    canWrite && role === undefined ? (
      <Button leftSection={<IconPlus size={16} />} onClick={open}>
        Create a team
      </Button>
    ) : undefined
  return (
    <Page
      title="Team"
      about="A team owns databases like an account does. Its members share them, each with a role, and sign in with a key of the team."
      actions={create}
    >
      <Loaded query={teams} loading={<LoadingLines />}>
        {(rows) =>
          rows.length === 0 ? (
            <Panel>
              <EmptyState title="No teams yet" icon={IconUsers} action={create}>
                Create a team to share databases without sharing your key.
              </EmptyState>
            </Panel>
          ) : (
            <Stack gap="lg">
              {rows.map((team) => (
                <TeamPanel key={team.team_id} team={team} />
              ))}
            </Stack>
          )
        }
      </Loaded>
      <CreateTeam isOpen={isOpen} onClose={close} />
    </Page>
  )
}

function TeamPanel({ team }: { team: Team }) {
  const [isAdding, { open, close }] = useDisclosure()
  const { email } = useSession()
  const canWrite = useCanWrite()
  const members = useApi(listTeamMembers, { params: { team_id: team.team_id } })
  const own = members.data?.find((member) => member.member_email.toLowerCase() === email.toLowerCase())?.member_role
  const manages = canWrite && (own === 'owner' || own === 'admin')
  const tools = (
    <Group gap="xs">
      {manages ? (
        <Button size="compact-sm" variant="default" leftSection={<IconUserPlus size={14} />} onClick={open}>
          Add a member
        </Button>
      ) : null}
      {own === 'owner' && canWrite ? <DeleteTeam team={team} /> : null}
    </Group>
  )
  return (
    <Panel flush title={team.team_name} about={own && `Your role is ${own}: it ${ROLE_TEXTS[own]}.`} actions={tools}>
      <Loaded query={members} loading={<LoadingLines count={2} />}>
        {(rows) => (
          <DataTable
            label={`Members of ${team.team_name}`}
            columns={columnsFor(email, manages, canWrite)}
            rows={rows}
            rowKey={(member) => member.member_email}
          />
        )}
      </Loaded>
      <AddMember team={team} isOpen={isAdding} onClose={close} />
    </Panel>
  )
}

function columnsFor(email: string, manages: boolean, canWrite: boolean): Column<TeamMember>[] {
  const mayRemove = (member: TeamMember): boolean =>
    member.member_role !== 'owner' && (manages || (canWrite && member.member_email === email))
  return [
    { key: 'email', title: 'E-mail', render: (member) => member.member_email },
    { key: 'role', title: 'Role', width: '96px', render: (member) => <Badge>{member.member_role}</Badge> },
    { key: 'may', title: 'Rights of the role', from: 'sm', render: (member) => ROLE_TEXTS[member.member_role] },
    {
      key: 'actions',
      title: '',
      width: '190px',
      isMenuOnPhones: true,
      align: 'right',
      render: (member) => (
        <MemberActions
          member={member}
          isSelf={member.member_email === email}
          mayRemove={mayRemove(member)}
          mayCreateKey={manages || (canWrite && member.member_email === email)}
        />
      ),
    },
  ]
}

interface MemberProps {
  readonly member: TeamMember
  readonly isSelf: boolean
  readonly mayRemove: boolean
  readonly mayCreateKey: boolean
}

function MemberActions({ member, isSelf, mayRemove, mayCreateKey }: MemberProps) {
  const { team_id, team_name, member_email } = member
  const navigate = useNavigate()
  const verb = isSelf ? 'Leave' : 'Remove'
  const createKey = () => void navigate({ to: '/api-keys', search: { team: team_id, member: member_email } })
  const ask = () =>
    confirm({
      title: isSelf ? `Leave ${team_name}` : `Remove ${member_email} from ${team_name}`,
      text: `The team keys of ${member_email} stop working at once.`,
      action: isSelf ? 'Leave the team' : 'Remove the member',
      onConfirm: () => api(removeTeamMember, { body: { team_id, member_email } }),
      refreshes: [isSelf ? listTeams : listTeamMembers],
    })
  const actions: RowAction[] = [
    ...(mayCreateKey ? [{ label: 'Create a key', onClick: createKey }] : []),
    ...(mayRemove ? [{ label: verb, onClick: ask, isDangerous: true }] : []),
  ]
  return <CellActions of={member_email} actions={actions} />
}

function DeleteTeam({ team: { team_id, team_name } }: { team: Team }) {
  const ask = () =>
    confirm({
      title: `Delete the team ${team_name}`,
      text: 'Its keys stop working at once. A team that still has databases cannot be deleted.',
      action: 'Delete the team',
      typed: team_name,
      onConfirm: () => api(deleteTeam, { params: { id: team_id } }),
      refreshes: [listTeams],
    })
  return (
    <Button size="compact-sm" variant="default" c="var(--mantine-color-error)" onClick={ask}>
      Delete
    </Button>
  )
}

const nameProblem = (name: string): string | null =>
  name.trim() === ''
    ? 'Enter a name for the team'
    : name.length > MAX_LABEL_LENGTH
      ? `At most ${MAX_LABEL_LENGTH} characters`
      : null

function CreateTeam({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const form = useForm({ initialValues: { team_name: '' }, validate: { team_name: nameProblem } })
  const create = useChange(createTeam, {
    refreshes: [listTeams],
    errors: 'inline',
    done: ({ team_name }) => `The team ${team_name} was created. You own it.`,
    onDone: () => {
      form.reset()
      onClose()
    },
  })
  const submit = form.onSubmit(({ team_name }) => create.mutate({ body: { team_name, copy_cc: false } }))
  return (
    <FormDialog
      opened={isOpen}
      onClose={onClose}
      title="Create a team"
      task={create}
      action="Create the team"
      onSubmit={submit}
    >
      <TextInput label="Name" data-autofocus {...form.getInputProps('team_name')} />
    </FormDialog>
  )
}

function AddMember({ team, isOpen, onClose }: { team: Team; isOpen: boolean; onClose: () => void }) {
  const form = useForm<{ member_email: string; member_role: (typeof ASSIGNABLE_ROLES)[number] }>({
    initialValues: { member_email: '', member_role: 'dev' },
    validate: {
      member_email: (email) => (/^[^\s@:]+@[^\s@:]+$/.test(email.trim()) ? null : 'Enter an e-mail address'),
    },
  })
  const add = useChange(addTeamMember, {
    refreshes: [listTeamMembers],
    errors: 'inline',
    done: ({ member_email }) => `${member_email} was added. Create a key that they sign in with.`,
    onDone: () => {
      form.reset()
      onClose()
    },
  })
  const submit = form.onSubmit(({ member_email, member_role }) =>
    add.mutate({ body: { team_id: team.team_id, member_email: member_email.trim(), member_role } }),
  )
  return (
    <FormDialog
      opened={isOpen}
      onClose={onClose}
      title={`Add a member to ${team.team_name}`}
      task={add}
      action="Add the member"
      onSubmit={submit}
    >
      <TextInput label="E-mail" type="email" data-autofocus {...form.getInputProps('member_email')} />
      <Select
        label="Role"
        data={ASSIGNABLE_ROLES.map((role) => ({ value: role, label: `${role}: ${ROLE_TEXTS[role]}` }))}
        {...form.getInputProps('member_role')}
      />
    </FormDialog>
  )
}
