import { Select, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import { useDisclosure } from '@mantine/hooks'
import { useNavigate } from '@tanstack/react-router'
import { listDatabaseSummaries } from '../../../../src/contract/console/console.js'
import { type CreateDatabaseBody, createDatabase } from '../../../../src/contract/databases/databases.js'
import type { Platform, Region } from '../../../../src/contract/databases/regions.js'
import { useChange } from '../../api/hooks.js'
import { useSession, useSettings } from '../../api/session.js'
import { FormDialog } from '../../components/form-dialog.js'
import { useRequestNames } from '../../lib/repeated.js'
import {
  bodyOf,
  CREATE_RULES,
  type CreateValues,
  hasMoreSettingsError,
  onPrimary,
  primaryRegionsFor,
  refusedField,
} from './create-form.js'
import { MoreSettings } from './create-more.js'
import { regionChoice } from './words.js'

/** The dialog that creates a database: name and region, and the other settings under "More settings". */
export function CreateDatabase({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const navigate = useNavigate()
  const [isMoreOpen, more] = useDisclosure()
  const form = useCreateForm()
  const names = useRequestNames('console-')
  const create = useChange(createDatabase, {
    refreshes: [listDatabaseSummaries],
    errors: 'inline',
    done: ({ database_name }) => `The database ${database_name} was created.`,
    onDone: ({ database_id }) => {
      names.answered()
      form.reset()
      more.close()
      void navigate({ to: '/databases/$id', params: { id: database_id }, replace: true })
    },
  })
  const send = (body: CreateDatabaseBody) =>
    create.mutate({ body, headers: { 'idempotency-key': names.of(body) } }, { onError: showRefusal })
  /** A refusal of the server is shown at its field, if it names one. */
  const showRefusal = ({ message }: Error) => {
    const field = refusedField(message)
    if (field === undefined) return
    create.reset()
    form.setFieldError(field, message)
    if (hasMoreSettingsError({ [field]: message })) more.open()
  }
  return (
    <FormDialog
      opened={isOpen}
      onClose={onClose}
      title="Create a database"
      size="lg"
      task={create}
      action="Create the database"
      onSubmit={form.onSubmit(
        (values) => send(bodyOf(values)),
        (errors) => {
          if (hasMoreSettingsError(errors)) more.open()
        },
      )}
    >
      <TextInput label="Name" placeholder="my-app" data-autofocus {...form.getInputProps('name')} />
      <PrimaryRegion values={form.values} onChange={(primary) => form.setValues(onPrimary(form.values, primary))} />
      <MoreSettings form={form} isOpen={isMoreOpen} onToggle={more.toggle} />
    </FormDialog>
  )
}

function useCreateForm() {
  const { tls_by_default, regions } = useSettings()
  const { account_type } = useSession()
  return useForm<CreateValues>({
    initialValues: {
      name: '',
      primary: regions?.[0] ?? 'us-east-1',
      reads: [],
      plan: account_type === 'free' ? 'free' : 'payg',
      budget: '',
      eviction: false,
      tls: tls_by_default,
    },
    validateInputOnChange: true,
    validate: CREATE_RULES,
  })
}

const PLATFORM_TITLES: Readonly<Record<Platform, string>> = { aws: 'AWS regions', gcp: 'GCP regions' }

function PrimaryRegion({ values, onChange }: { values: CreateValues; onChange: (primary: Region) => void }) {
  const { regions } = useSettings()
  const groups = (['aws', 'gcp'] as const).flatMap((platform) => {
    const items = primaryRegionsFor(platform, regions).map(regionChoice)
    return items.length === 0 ? [] : [{ group: PLATFORM_TITLES[platform], items }]
  })
  return (
    <Select
      label="Region"
      description="Handles the writes"
      searchable
      allowDeselect={false}
      data={groups}
      value={values.primary}
      onChange={(value) => value !== null && onChange(value)}
    />
  )
}
