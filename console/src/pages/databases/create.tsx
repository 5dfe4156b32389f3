import {
  MultiSelect,
  NumberInput,
  SegmentedControl,
  Select,
  SimpleGrid,
  Stack,
  Switch,
  Text,
  TextInput,
} from '@mantine/core'
import { type UseFormReturnType, useForm } from '@mantine/form'
import { useNavigate } from '@tanstack/react-router'
import { listDatabaseSummaries, type OfferedPlan } from '../../../../src/contract/console/console.js'
import { createDatabase } from '../../../../src/contract/databases/databases.js'
import { type Platform, REGIONS, type Region } from '../../../../src/contract/databases/regions.js'
import { useChange } from '../../api/hooks.js'
import { useSession, useSettings } from '../../api/session.js'
import { FormDialog } from '../../components/form-dialog.js'
import { bytes, limit, short } from '../../lib/format.js'
import {
  BUDGET_FIELD,
  bodyOf,
  CREATE_RULES,
  type CreateValues,
  onPlatform,
  onPrimary,
  primaryRegionsFor,
  readRegionsFor,
} from './create-form.js'
import { priceText } from './price.js'
import { placeOf, planTitle } from './words.js'

const PLATFORMS: { value: Platform; label: string }[] = [
  { value: 'aws', label: 'AWS regions' },
  { value: 'gcp', label: 'GCP regions' },
]

const regionChoice = <Name extends Region>(region: Name) => ({ value: region, label: `${region} · ${placeOf(region)}` })

/** The dialog that creates a database: every field of the API, the price, and validation while typing. */
export function CreateDatabase({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const navigate = useNavigate()
  const { plans } = useSettings()
  const form = useCreateForm()
  const create = useChange(createDatabase, {
    refreshes: [listDatabaseSummaries],
    errors: 'inline',
    done: ({ database_name }) => `The database ${database_name} was created.`,
    onDone: ({ database_id }) => {
      form.reset()
      void navigate({ to: '/databases/$id', params: { id: database_id } })
    },
  })
  const plan = plans.find((offered) => offered.plan === form.values.plan)
  return (
    <FormDialog
      opened={isOpen}
      onClose={onClose}
      title="Create a database"
      size="lg"
      task={create}
      action="Create the database"
      onSubmit={form.onSubmit((values) => create.mutate({ body: bodyOf(values) }))}
      note={plan ? <Price plan={plan} /> : null}
    >
      <TextInput label="Name" placeholder="my-app" data-autofocus {...form.getInputProps('name')} />
      <Regions form={form} />
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md">
        <Select
          label="Plan"
          data={plans.map((offered) => ({ value: offered.plan, label: planTitle(offered.plan) }))}
          description={plan ? limitsText(plan) : undefined}
          inputWrapperOrder={['label', 'input', 'description', 'error']}
          {...form.getInputProps('plan')}
        />
        <NumberInput
          label="Monthly budget"
          description="At the limit, commands are refused until the month ends or you raise it"
          inputWrapperOrder={['label', 'input', 'description', 'error']}
          {...BUDGET_FIELD}
          {...form.getInputProps('budget')}
        />
      </SimpleGrid>
      <Stack gap="xs">
        <Switch
          label="Evict keys when the database is full"
          description="The least recently used keys are evicted; otherwise writes are refused"
          {...form.getInputProps('eviction', { type: 'checkbox' })}
        />
        <Switch
          label="TLS"
          description="The Redis port uses TLS; it cannot be disabled later"
          {...form.getInputProps('tls', { type: 'checkbox' })}
        />
      </Stack>
    </FormDialog>
  )
}

function useCreateForm() {
  const { tls_by_default, regions } = useSettings()
  const { account_type } = useSession()
  return useForm<CreateValues>({
    initialValues: {
      name: '',
      ...firstRegion(regions),
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

/** What the form begins with: the first region that a node serves. */
function firstRegion(served: readonly Region[] | undefined): Pick<CreateValues, 'platform' | 'primary'> {
  const primary = served?.[0] ?? 'us-east-1'
  return { platform: REGIONS[primary].platform, primary }
}

function Regions({ form }: { form: UseFormReturnType<CreateValues> }) {
  const { platform, primary, plan } = form.values
  const { regions } = useSettings()
  const reads = readRegionsFor({ platform, primary }, regions)
  const platforms = PLATFORMS.filter(({ value }) => primaryRegionsFor(value, regions).length > 0)
  return (
    <>
      <Stack gap={4}>
        <Text size="sm" fw={500} id="platform-label">
          Platform
        </Text>
        <SegmentedControl
          aria-labelledby="platform-label"
          size="sm"
          data={platforms}
          value={platform}
          onChange={(value) => form.setValues(onPlatform(form.values, value, regions))}
        />
      </Stack>
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md">
        <Select
          label="Primary region"
          description="Handles the writes"
          searchable
          data={primaryRegionsFor(platform, regions).map(regionChoice)}
          value={primary}
          onChange={(value) => value !== null && form.setValues(onPrimary(form.values, value))}
        />
        <MultiSelect
          label="Read regions"
          description={
            reads.length === 0 ? 'Only AWS regions can have read regions' : 'Each has a replica that serves reads'
          }
          placeholder={form.values.reads.length === 0 ? 'None' : ''}
          size="sm"
          searchable
          disabled={reads.length === 0}
          maxValues={plan === 'free' ? 1 : reads.length}
          data={reads.map(regionChoice)}
          {...form.getInputProps('reads')}
        />
      </SimpleGrid>
    </>
  )
}

function Price({ plan }: { plan: OfferedPlan }) {
  return (
    <Text size="sm" maw={300}>
      <Text span fw={600}>
        Price:
      </Text>{' '}
      {priceText(plan)}
    </Text>
  )
}

/** The limits of a plan in one line. */
function limitsText(plan: OfferedPlan): string {
  const commands = limit(plan.db_request_limit, short)
  return `${bytes(Math.min(plan.db_disk_threshold, plan.db_memory_threshold))} of data, ${short(plan.db_max_commands_per_second)} commands/s, ${commands === 'no limit' ? 'no monthly limit' : `${commands} commands per month`}`
}
