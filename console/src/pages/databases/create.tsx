import {
  Button,
  Collapse,
  MultiSelect,
  NumberInput,
  Select,
  SimpleGrid,
  Stack,
  Switch,
  Text,
  TextInput,
} from '@mantine/core'
import { type UseFormReturnType, useForm } from '@mantine/form'
import { useNavigate } from '@tanstack/react-router'
import { useId, useState } from 'react'
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
  hasBudget,
  isUnderMore,
  onPrimary,
  primaryRegionsFor,
  readRegionsFor,
  summaryOf,
} from './create-form.js'
import { priceText } from './price.js'
import { placeOf, planTitle } from './words.js'

const PLATFORMS: { platform: Platform; group: string }[] = [
  { platform: 'aws', group: 'AWS regions' },
  { platform: 'gcp', group: 'GCP regions' },
]

const regionChoice = <Name extends Region>(region: Name) => ({ value: region, label: `${region} · ${placeOf(region)}` })

/** The dialog that creates a database: its name and region, and under "More" what most databases leave as it is. */
export function CreateDatabase({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const navigate = useNavigate()
  const [showsMore, setShowsMore] = useState(false)
  const form = useCreateForm()
  const create = useChange(createDatabase, {
    refreshes: [listDatabaseSummaries],
    errors: 'inline',
    done: ({ database_name }) => `The database ${database_name} was created.`,
    onDone: ({ database_id }) => {
      form.reset()
      setShowsMore(false)
      void navigate({ to: '/databases/$id', params: { id: database_id } })
    },
  })
  const submit = form.onSubmit(
    (values) => create.mutate({ body: bodyOf(values) }),
    // A field with an error must be seen.
    (errors) => Object.keys(errors).some(isUnderMore) && setShowsMore(true),
  )
  return (
    <FormDialog
      opened={isOpen}
      onClose={onClose}
      title="Create a database"
      size="lg"
      task={create}
      action="Create the database"
      onSubmit={submit}
    >
      <TextInput label="Name" placeholder="my-app" data-autofocus {...form.getInputProps('name')} />
      <PrimaryRegion form={form} />
      <More form={form} isOpen={showsMore} onToggle={() => setShowsMore(!showsMore)} />
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

type Form = UseFormReturnType<CreateValues>

function PrimaryRegion({ form }: { form: Form }) {
  const { regions } = useSettings()
  const groups = PLATFORMS.map(({ platform, group }) => ({
    group,
    items: primaryRegionsFor(platform, regions).map(regionChoice),
  }))
  return (
    <Select
      label="Region"
      description="Where the database takes writes"
      searchable
      allowDeselect={false}
      data={groups.filter(({ items }) => items.length > 0)}
      value={form.values.primary}
      onChange={(value) => value !== null && form.setValues(onPrimary(form.values, value))}
    />
  )
}

function More({ form, isOpen, onToggle }: { form: Form; isOpen: boolean; onToggle: () => void }) {
  const id = useId()
  return (
    <Stack gap="md">
      <Stack gap={2} align="flex-start">
        <Button variant="subtle" size="compact-sm" ml={-8} aria-expanded={isOpen} aria-controls={id} onClick={onToggle}>
          {isOpen ? 'Less' : 'More…'}
        </Button>
        {isOpen ? null : (
          <Text size="sm" c="dimmed">
            {summaryOf(form.values, planTitle(form.values.plan))}
          </Text>
        )}
      </Stack>
      <Collapse id={id} expanded={isOpen}>
        <Stack gap="md">
          <PlanAndBudget form={form} />
          <ReadRegions form={form} />
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
      </Collapse>
    </Stack>
  )
}

function PlanAndBudget({ form }: { form: Form }) {
  const { plans } = useSettings()
  const plan = plans.find((offered) => offered.plan === form.values.plan)
  const price = plan && hasBudget(form.values) ? ` It counts ${priceText(plan)}.` : ''
  return (
    <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md">
      <Select
        label="Plan"
        data={plans.map((offered) => ({ value: offered.plan, label: planTitle(offered.plan) }))}
        description={plan ? limitsText(plan) : undefined}
        inputWrapperOrder={['label', 'input', 'description', 'error']}
        allowDeselect={false}
        {...form.getInputProps('plan')}
      />
      <NumberInput
        label="Monthly budget"
        description={`At the limit, commands are refused until the month ends or you raise it.${price}`}
        inputWrapperOrder={['label', 'input', 'description', 'error']}
        {...BUDGET_FIELD}
        {...form.getInputProps('budget')}
      />
    </SimpleGrid>
  )
}

function ReadRegions({ form }: { form: Form }) {
  const { platform, primary, plan, reads: chosen } = form.values
  const { regions } = useSettings()
  const reads = readRegionsFor({ platform, primary }, regions)
  return (
    <MultiSelect
      label="Read regions"
      description={
        reads.length === 0
          ? platform === 'gcp'
            ? 'Only AWS regions can have read regions'
            : 'No other region is served'
          : 'Each has a replica that serves reads'
      }
      placeholder={chosen.length === 0 ? 'None' : ''}
      size="sm"
      searchable
      disabled={reads.length === 0}
      maxValues={plan === 'free' ? 1 : reads.length}
      data={reads.map(regionChoice)}
      {...form.getInputProps('reads')}
    />
  )
}

/** What a plan allows, in one line. */
function limitsText(plan: OfferedPlan): string {
  const commands = limit(plan.db_request_limit, short)
  const perMonth = commands === 'no limit' ? 'no monthly limit' : `${commands} commands per month`
  const size = bytes(Math.min(plan.db_disk_threshold, plan.db_memory_threshold))
  return `Allows ${size} of data, ${short(plan.db_max_commands_per_second)} commands per second, ${perMonth}`
}
