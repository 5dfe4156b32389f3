import IconChevronDown from 'icon:chevron-down'
import IconChevronUp from 'icon:chevron-up'
import { Button, Collapse, NumberInput, Select, SimpleGrid, Textarea, TextInput } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import type { ReactNode } from 'react'
import { GREATEST_PRIORITY } from '../../../../src/contract/queue/priority.js'
import type { DeliveryValues, Rule } from './delivery-form.js'

/** A form with at least these fields. */
export interface DeliveryFormState {
  readonly values: Pick<DeliveryValues, 'rule'>
  readonly getInputProps: (name: keyof DeliveryValues) => object
}

/** Rarely changed settings, which a button opens. They stay visible while one of them has an error. */
export function AllSettings({
  errors,
  others,
  children,
}: {
  /** The errors of the whole form. */
  errors: Readonly<Record<string, ReactNode>>
  /** The fields of the form that are not among these settings. */
  others: readonly string[]
  children: ReactNode
}) {
  const [isWanted, { toggle }] = useDisclosure()
  const isOpen = isWanted || Object.keys(errors).some((name) => !others.includes(name))
  return (
    <>
      <Button
        variant="subtle"
        size="compact-sm"
        onClick={toggle}
        aria-expanded={isOpen}
        leftSection={isOpen ? <IconChevronUp size={15} /> : <IconChevronDown size={15} />}
        style={{ alignSelf: 'flex-start' }}
      >
        {isOpen ? 'Fewer settings' : 'More settings'}
      </Button>
      <Collapse expanded={isOpen}>
        <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="md">
          {children}
        </SimpleGrid>
      </Collapse>
    </>
  )
}

/** The field for the body. */
export function BodyField({
  form,
  label,
  description,
}: {
  form: DeliveryFormState
  label: string
  description?: string
}) {
  return (
    <Textarea
      label={label}
      {...(description !== undefined && { description })}
      autosize
      minRows={4}
      maxRows={14}
      placeholder='{"order": 4711}'
      styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
      {...form.getInputProps('body')}
    />
  )
}

/** The field for the label. */
export function LabelField({ form }: { form: DeliveryFormState }) {
  return <TextInput label="Label" placeholder="For filters and searches" {...form.getInputProps('label')} />
}

/** A form with delay and retries. */
export interface TimingFormState {
  readonly getInputProps: (name: 'delay' | 'retries') => object
}

/** The fields for delay and retries. */
export function TimingFields({
  form,
  retriesLabel,
  retriesElse,
}: {
  form: TimingFormState
  retriesLabel: string
  /** The placeholder of the empty field. */
  retriesElse: string
}) {
  return (
    <>
      <TextInput label="Delay" placeholder="10s, 5m, 1h30m" {...form.getInputProps('delay')} />
      <NumberInput
        label={retriesLabel}
        placeholder={retriesElse}
        min={0}
        allowDecimal={false}
        allowNegative={false}
        {...form.getInputProps('retries')}
      />
    </>
  )
}

/** The fields for delay, retries, callback, headers and other settings of the delivery. */
export function DeliveryFields({ form, retriesLabel }: { form: DeliveryFormState; retriesLabel: string }) {
  return (
    <>
      <TimingFields form={form} retriesLabel={retriesLabel} retriesElse="3" />
      <TextInput
        label="Failure callback"
        placeholder="Called after the final failure"
        {...form.getInputProps('failureCallback')}
      />
      <Textarea
        label="Forwarded headers"
        placeholder="Authorization: Bearer …"
        autosize
        minRows={1}
        maxRows={6}
        {...form.getInputProps('headers')}
      />
      <TextInput label="Flow-control key" placeholder="Shares a limit" {...form.getInputProps('flowKey')} />
      <TextInput
        label="Limits of the key"
        placeholder="rate=10, period=1m, parallelism=5"
        {...form.getInputProps('flowValue')}
      />
      <NumberInput
        label="Priority"
        placeholder="Seconds that it counts as due earlier"
        min={-GREATEST_PRIORITY}
        max={GREATEST_PRIORITY}
        allowDecimal={false}
        {...form.getInputProps('priority')}
      />
      <RuleFields form={form} />
    </>
  )
}

const RULES: readonly { readonly value: Rule; readonly label: string }[] = [
  { value: 'none', label: 'All are sent' },
  { value: 'debounce', label: 'Debounce: send the newest' },
  { value: 'skip', label: 'Singleton: skip the newer' },
  { value: 'cancel', label: 'Singleton: cancel the older' },
]

/** The debounce or singleton key. */
function RuleFields({ form }: { form: DeliveryFormState }) {
  const { rule } = form.values
  return (
    <>
      <Select label="With the same key" data={[...RULES]} {...form.getInputProps('rule')} />
      {rule === 'none' ? null : (
        <TextInput
          label={rule === 'debounce' ? 'Debounce key' : 'Singleton key'}
          placeholder="cart-7"
          {...form.getInputProps('ruleKey')}
        />
      )}
      {rule === 'debounce' ? (
        <>
          <TextInput label="Wait for a newer one" placeholder="30s" {...form.getInputProps('debounceDelay')} />
          <TextInput label="Wait at most" placeholder="No limit" {...form.getInputProps('debounceMaxDelay')} />
        </>
      ) : null}
    </>
  )
}
