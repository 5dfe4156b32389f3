import IconChevronDown from 'icon:chevron-down'
import IconChevronRight from 'icon:chevron-right'
import { MultiSelect, NumberInput, Select, SimpleGrid, Stack, Switch, Text, UnstyledButton } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import { useSettings } from '../../api/session.js'
import { BUDGET_FIELD, type CreateValues, moreSettingsText, readRegionsFor } from './create-form.js'
import { PlanLimits } from './plan-limits-view.js'
import { priceText } from './price.js'
import { planTitle, regionChoice } from './words.js'

const AFTER_INPUT: ('label' | 'input' | 'description' | 'error')[] = ['label', 'input', 'description', 'error']

interface MoreProps {
  readonly form: UseFormReturnType<CreateValues>
  readonly isOpen: boolean
  readonly onToggle: () => void
}

/** The settings of a new database that have a sensible default. While the section is closed, one line shows their values. */
export function MoreSettings({ form, isOpen, onToggle }: MoreProps) {
  return (
    <Stack gap="md">
      <div>
        <UnstyledButton
          aria-expanded={isOpen}
          aria-controls="more-settings"
          onClick={onToggle}
          c="var(--mantine-color-anchor)"
          fz="sm"
          fw={550}
          style={{ display: 'inline-flex', alignItems: 'center', gap: 4 }}
        >
          {isOpen ? <IconChevronDown size={15} aria-hidden /> : <IconChevronRight size={15} aria-hidden />}
          More settings
        </UnstyledButton>
        {isOpen ? null : (
          <Text size="sm" c="dimmed" mt={2}>
            {moreSettingsText(form.values)}
          </Text>
        )}
      </div>
      <Stack id="more-settings" gap="md" display={isOpen ? undefined : 'none'}>
        {isOpen ? <Fields form={form} /> : null}
      </Stack>
    </Stack>
  )
}

function Fields({ form }: Pick<MoreProps, 'form'>) {
  const { plans, regions } = useSettings()
  const { primary, reads, plan: name, budget } = form.values
  const plan = plans.find((offered) => offered.plan === name)
  const offered = readRegionsFor(primary, regions)
  return (
    <>
      <Select
        label="Plan"
        data={plans.map((one) => ({ value: one.plan, label: planTitle(one.plan) }))}
        description={plan ? <PlanLimits plan={plan} /> : undefined}
        inputWrapperOrder={AFTER_INPUT}
        allowDeselect={false}
        {...form.getInputProps('plan')}
      />
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md">
        <MultiSelect
          label="Read regions"
          description={
            offered.length === 0 ? 'This primary region has no read regions' : 'Each has a replica that serves reads'
          }
          placeholder={reads.length === 0 ? 'None' : ''}
          inputWrapperOrder={AFTER_INPUT}
          size="sm"
          searchable
          disabled={offered.length === 0}
          maxValues={plan?.max_read_regions ?? offered.length}
          data={offered.map(regionChoice)}
          {...form.getInputProps('reads')}
        />
        <NumberInput
          label="Monthly budget"
          description={
            budget === '' || budget === 0 || plan === undefined
              ? 'Stops commands when their price reaches it'
              : `Commands stop at the budget. Price: ${priceText(plan)}`
          }
          inputWrapperOrder={AFTER_INPUT}
          {...BUDGET_FIELD}
          {...form.getInputProps('budget')}
        />
      </SimpleGrid>
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
    </>
  )
}
