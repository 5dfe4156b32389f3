import IconChevronDown from 'icon:chevron-down'
import IconChevronUp from 'icon:chevron-up'
import { Button, Collapse, NumberInput, SimpleGrid, Textarea, TextInput } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import type { ReactNode } from 'react'
import type { DeliveryValues } from './delivery-form.js'

/** A form with at least these fields. */
export interface DeliveryFormState {
  readonly getInputProps: (name: keyof DeliveryValues) => object
}

/** Rarely changed settings, behind a button. */
export function AllSettings({ children }: { children: ReactNode }) {
  const [isOpen, { toggle }] = useDisclosure()
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

/** What is delivered. */
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

/** How it is delivered. */
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
    </>
  )
}
