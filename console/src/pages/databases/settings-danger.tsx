import { Button, Select, Stack } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { listTeams } from '../../../../src/contract/accounts/accounts.js'
import {
  moveToTeam,
  resetPassword,
  resumeDatabase,
  suspendDatabase,
} from '../../../../src/contract/databases/changes.js'
import { type DatabaseRecord, deleteDatabase } from '../../../../src/contract/databases/databases.js'
import { api } from '../../api/client.js'
import { useApi } from '../../api/hooks.js'
import { useSession } from '../../api/session.js'
import { confirm } from '../../components/confirm.js'
import { Panel } from '../../components/page.js'
import { DATABASE_READS, SaveForm, Setting } from './setting.js'

/** Changes that break clients or delete data; each needs a confirmation. */
export function DangerZone({ database }: { database: DatabaseRecord }) {
  return (
    <Panel title="Danger zone" style={{ borderColor: 'var(--hp-bad)' }}>
      <Stack gap="xl">
        <ResetPassword database={database} />
        <Suspend database={database} />
        <MoveToTeam database={database} />
        <Delete database={database} />
      </Stack>
    </Panel>
  )
}

function ResetPassword({ database: { database_id, database_name } }: { database: DatabaseRecord }) {
  const ask = () =>
    confirm({
      title: `Reset the credentials of ${database_name}`,
      text: 'The password and both REST tokens are replaced. The old ones stop working at once, and connections that use them are closed.',
      action: 'Reset the credentials',
      onConfirm: () => api(resetPassword, { params: { id: database_id } }),
      refreshes: DATABASE_READS,
    })
  return (
    <Setting title="Credentials" about="Replaces the password and both REST tokens.">
      <Button variant="default" c="var(--mantine-color-error)" onClick={ask}>
        Reset the credentials
      </Button>
    </Setting>
  )
}

function Suspend({ database: { database_id, database_name, suspended_by } }: { database: DatabaseRecord }) {
  const params = { id: database_id }
  const suspend = () =>
    confirm({
      title: `Suspend ${database_name}`,
      text: 'Every command is refused and its engines stop, until you resume it. Data, backups and credentials stay.',
      action: 'Suspend the database',
      onConfirm: () => api(suspendDatabase, { params }),
      refreshes: DATABASE_READS,
    })
  const resume = () =>
    confirm({
      title: `Resume ${database_name}`,
      text: 'Commands are served again, unless its budget is spent.',
      action: 'Resume the database',
      onConfirm: () => api(resumeDatabase, { params }),
      refreshes: DATABASE_READS,
    })
  if (suspended_by === 'owner') {
    return (
      <Setting title="Suspended" about="You have suspended this database: its commands are refused.">
        <Button variant="default" onClick={resume}>
          Resume the database
        </Button>
      </Setting>
    )
  }
  return (
    <Setting title="Suspend" about="Refuses every command until you resume it. Keeps the data.">
      <Button variant="default" c="var(--mantine-color-error)" onClick={suspend}>
        Suspend the database
      </Button>
    </Setting>
  )
}

function MoveToTeam({ database: { database_id, database_name } }: { database: DatabaseRecord }) {
  const navigate = useNavigate()
  const { role } = useSession()
  const teams = useApi(listTeams, {}, { enabled: role === undefined })
  const [teamId, setTeamId] = useState<string | null>(null)
  const team = teams.data?.find(({ team_id }) => team_id === teamId)
  const ask = () =>
    team &&
    confirm({
      title: `Move ${database_name} to ${team.team_name}`,
      text: 'Clients are not affected. The database leaves this account; members see it with a key of the team.',
      action: 'Move the database',
      onConfirm: async () => {
        await api(moveToTeam, { body: { team_id: team.team_id, database_id } })
        await navigate({ to: '/databases' })
      },
      refreshes: DATABASE_READS,
    })
  // A key of a team sees only that team, so it cannot choose another one.
  if (role !== undefined || teams.data?.length === 0) return null
  return (
    <Setting title="Team" about="Moves the database to a team that you are a member of.">
      <SaveForm isChanged={team !== undefined} isPending={false} onSave={() => ask()} action="Move">
        <Select
          aria-label="Team"
          placeholder="Choose a team"
          data={(teams.data ?? []).map(({ team_id, team_name }) => ({ value: team_id, label: team_name }))}
          value={teamId}
          onChange={setTeamId}
        />
      </SaveForm>
    </Setting>
  )
}

function Delete({ database: { database_id, database_name } }: { database: DatabaseRecord }) {
  const navigate = useNavigate()
  const ask = () =>
    confirm({
      title: `Delete ${database_name}`,
      text: 'Its data, backups and credentials are deleted, and its port is released. This cannot be undone.',
      action: 'Delete the database',
      typed: database_name,
      onConfirm: async () => {
        await api(deleteDatabase, { params: { id: database_id } })
        await navigate({ to: '/databases' })
      },
      refreshes: DATABASE_READS,
    })
  return (
    <Setting title="Delete" about="Deletes the database with its data and backups, and closes all connections.">
      <Button color="red.9" onClick={ask}>
        Delete the database
      </Button>
    </Setting>
  )
}
