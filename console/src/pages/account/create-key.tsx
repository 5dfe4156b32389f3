import { Checkbox, Select, Text, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import {
  createApiKey,
  listApiKeys,
  listTeamMembers,
  listTeams,
  MAX_LABEL_LENGTH,
  type NewApiKey,
} from '../../../../src/contract/accounts/accounts.js'
import { useApi, useChange } from '../../api/hooks.js'
import { useSession } from '../../api/session.js'
import { FormDialog } from '../../components/form-dialog.js'
import { EXPIRIES, expiresInOf } from './secrets.js'

interface CreateKeyProps {
  readonly teamId: string | undefined
  /** Who will hold the key; absent: the signed-in user. */
  readonly member: string | undefined
  readonly onClose: () => void
  readonly onMade: (key: NewApiKey) => void
}

/** The dialog that creates an API key. */
export function CreateKey({ teamId, member, onClose, onMade }: CreateKeyProps) {
  const session = useSession()
  const members = useApi(listTeamMembers, { params: { team_id: teamId ?? '' } }, { enabled: teamId !== undefined })
  const form = useForm({
    initialValues: { name: '', read_only: false, member_email: member ?? session.email, expires: '' },
    validateInputOnChange: true,
    validate: {
      name: (name) =>
        name.trim() === ''
          ? 'Enter a name for the key'
          : name.length > MAX_LABEL_LENGTH
            ? `At most ${MAX_LABEL_LENGTH} characters`
            : null,
    },
  })
  const own = members.data?.find(({ member_email }) => member_email === session.email)?.member_role
  const manages = own === 'owner' || own === 'admin'
  const holders = manages ? (members.data ?? []).map(({ member_email }) => member_email) : [session.email]
  const create = useChange(createApiKey, {
    refreshes: [listApiKeys],
    errors: 'inline',
    onDone: (key) => {
      onClose()
      onMade(key)
    },
  })
  const submit = form.onSubmit(({ name, read_only, member_email, expires }) =>
    create.mutate({
      body: {
        name,
        read_only,
        ...expiresInOf(expires),
        ...(teamId === undefined ? {} : { team_id: teamId, member_email }),
      },
    }),
  )
  return (
    <FormDialog
      opened
      onClose={onClose}
      title="Create an API key"
      task={create}
      action="Create the key"
      onSubmit={submit}
    >
      <WhoseKey teamId={teamId} />
      <TextInput
        label="Name"
        description="What will use the key, such as: deploy"
        data-autofocus
        {...form.getInputProps('name')}
      />
      {teamId === undefined ? null : (
        <Select
          label="Member"
          description="The key has the role of this member"
          data={holders}
          {...form.getInputProps('member_email')}
        />
      )}
      <Select label="Expires" data={EXPIRIES} {...form.getInputProps('expires')} />
      <Checkbox
        label="Read only: the key cannot change anything"
        {...form.getInputProps('read_only', { type: 'checkbox' })}
      />
    </FormDialog>
  )
}

/** Says what the key gives access to. Without teams, that is always the account, so nothing is shown. */
function WhoseKey({ teamId }: { teamId: string | undefined }) {
  const { data: teams = [] } = useApi(listTeams, {})
  if (teams.length === 0) return null
  const name = teams.find(({ team_id }) => team_id === teamId)?.team_name
  return (
    <Text size="sm" c="dimmed">
      {teamId === undefined
        ? 'A key of your own account. Members of a team get a key of the team: choose it above the list of keys.'
        : `A key of the team ${name ?? ''}, for one of its members.`}
    </Text>
  )
}
