import IconKey from 'icon:key'
import IconPlus from 'icon:plus'
import { Badge, Button, Select } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import {
  type ApiKey,
  deleteApiKey,
  listApiKeys,
  listTeamMembers,
  listTeams,
  type NewApiKey,
} from '../../../../src/contract/accounts/accounts.js'
import { rotateApiKey } from '../../../../src/contract/accounts/credentials.js'
import { api } from '../../api/client.js'
import { useApi } from '../../api/hooks.js'
import { useCanWrite, useSession } from '../../api/session.js'
import { type Column, DataTable } from '../../components/data-table.js'
import { Page, Panel } from '../../components/page.js'
import { ShownOnce } from '../../components/shown-once.js'
import { EmptyState, Loaded, LoadingLines } from '../../components/states.js'
import { When } from '../../components/when.js'
import { given } from '../../lib/search.js'
import { CreateKey } from './create-key.js'
import { SecretActions, validityColumns } from './secrets.js'

const route = getRouteApi('/shell/api-keys')

/** The API keys of the account or of a team. */
export function ApiKeysPage() {
  const { team, member } = route.useSearch()
  const navigate = useNavigate()
  const setTeamId = (next: string | undefined) => void navigate({ to: '/api-keys', search: given({ team: next }) })
  const [isAsked, { open, close }] = useDisclosure()
  const [made, setMade] = useState<NewApiKey | undefined>()
  const canWrite = useCanWrite()
  const { role, account_id } = useSession()
  const teamId = role === undefined ? team : account_id
  const keys = useApi(listApiKeys, { query: { team_id: teamId } })
  const holders = useHolders(teamId)
  const create = canWrite ? (
    <Button leftSection={<IconPlus size={16} />} onClick={open}>
      Create a key
    </Button>
  ) : undefined
  return (
    <Page
      title="API keys"
      about="An API key signs in to the management API and to this console. It is shown once, when it is created."
      actions={create}
    >
      <Panel flush title="Keys" actions={<Owner teamId={teamId} onChange={setTeamId} />}>
        <Loaded query={keys} loading={<LoadingLines />}>
          {(rows) => (
            <DataTable
              label="API keys"
              columns={columnsFor(holders, teamId, setMade)}
              rows={rows}
              rowKey={(key) => key.key_id}
              empty={
                <EmptyState title="No API keys yet" icon={IconKey} action={create}>
                  A key of a team has the role of its member.
                </EmptyState>
              }
            />
          )}
        </Loaded>
      </Panel>
      {canWrite && (isAsked || member !== undefined) ? (
        <CreateKey
          teamId={teamId}
          member={member}
          onClose={() => {
            close()
            // Replaces the history entry, so that going back does not open the closed dialog again.
            if (member !== undefined) void navigate({ to: '/api-keys', search: given({ team }), replace: true })
          }}
          onMade={setMade}
        />
      ) : null}
      <NewSecret made={made} onClose={() => setMade(undefined)} />
    </Page>
  )
}

/** Selects the owner of the keys. A key of a team sees only that team, so there is nothing to select. */
function Owner({ teamId, onChange }: { teamId: string | undefined; onChange: (teamId: string | undefined) => void }) {
  const { role } = useSession()
  const teams = useApi(listTeams, {}, { enabled: role === undefined })
  if (role !== undefined || (teams.data ?? []).length === 0) return null
  const choices = (teams.data ?? []).map(({ team_id, team_name }) => ({ value: team_id, label: `Team ${team_name}` }))
  return (
    <Select
      aria-label="Owner of the keys"
      size="xs"
      w={220}
      data={[{ value: '', label: 'Your account' }, ...choices]}
      value={teamId ?? ''}
      onChange={(value) => onChange(value || undefined)}
    />
  )
}

/** The holders of the keys, and the rights of keys and of the signed-in user. */
interface Holders {
  readonly isOfTeam: boolean
  /** Whether a key may only read, because of its own access or the role of its holder. */
  readonly reads: (key: ApiKey) => boolean
  /** Whether the user may rotate and delete a key. In a team, only its owner and admins may change the keys of others. */
  readonly mayChange: (key: ApiKey) => boolean
}

function useHolders(teamId: string | undefined): Holders {
  const canWrite = useCanWrite()
  const { email, role } = useSession()
  const isOfTeam = teamId !== undefined
  const members = useApi(listTeamMembers, { params: { team_id: teamId ?? '' } }, { enabled: isOfTeam })
  const isSame = (one: string, other = '') => one.toLowerCase() === other.toLowerCase()
  const roleOf = (holder = '') => members.data?.find(({ member_email }) => isSame(member_email, holder))?.member_role
  const own = role ?? roleOf(email)
  const mayChangeOthers = (key: ApiKey): boolean =>
    own === 'owner' || (own === 'admin' && roleOf(key.member_email) !== 'owner')
  return {
    isOfTeam,
    reads: (key) => key.read_only || roleOf(key.member_email) === 'finance',
    mayChange: (key) => canWrite && (!isOfTeam || isSame(email, key.member_email) || mayChangeOthers(key)),
  }
}

function columnsFor(
  { isOfTeam, reads, mayChange }: Holders,
  teamId: string | undefined,
  onRotated: (key: NewApiKey) => void,
): Column<ApiKey>[] {
  const holder: Column<ApiKey> = { key: 'holder', title: 'Member', render: (key) => key.member_email ?? '', from: 'sm' }
  return [
    { key: 'name', title: 'Name', render: (key) => key.name },
    {
      key: 'access',
      title: 'Access',
      width: '110px',
      render: (key) => <Badge color={reads(key) ? 'gray' : 'harbour'}>{reads(key) ? 'read only' : 'full'}</Badge>,
    },
    ...(isOfTeam ? [holder] : []),
    ...validityColumns<ApiKey>(),
    {
      key: 'created',
      title: 'Created',
      width: '150px',
      from: 'xs',
      render: (key) => <When atMs={key.creation_time * 1000} />,
    },
    {
      key: 'actions',
      title: '',
      width: '150px',
      isMenuOnPhones: true,
      align: 'right',
      render: (key) => (mayChange(key) ? <KeyActions apiKey={key} teamId={teamId} onRotated={onRotated} /> : null),
    },
  ]
}

function KeyActions({
  apiKey: { key_id: id, name },
  teamId,
  onRotated,
}: {
  apiKey: ApiKey
  teamId: string | undefined
  onRotated: (key: NewApiKey) => void
}) {
  const of = { params: { id }, query: { team_id: teamId } }
  return (
    <SecretActions
      kind="key"
      name={name}
      rotation={{
        text: 'A new secret is created and shown once. The old one is accepted for one more day, then it and older console sessions are refused.',
        onConfirm: async () => onRotated(await api(rotateApiKey, of)),
      }}
      deletion={{
        text: 'Programs and console sessions that use it are refused from then on.',
        onConfirm: () => api(deleteApiKey, of),
      }}
      refreshes={[listApiKeys]}
    />
  )
}

function NewSecret({ made, onClose }: { made: NewApiKey | undefined; onClose: () => void }) {
  return (
    <ShownOnce
      title={`The secret of the key ${made?.name ?? ''}`}
      secrets={[{ label: 'The new API key', value: made?.api_key ?? '' }]}
      isOpen={made !== undefined}
      onClose={onClose}
    />
  )
}
