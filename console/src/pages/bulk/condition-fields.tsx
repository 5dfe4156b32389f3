import { Button, Group, NumberInput, Select, SimpleGrid, Stack, Text, Textarea, TextInput } from '@mantine/core'
import { useState } from 'react'
import { listSelectors, saveSelector } from '../../../../src/contract/bulk/saved.js'
import { SELECTING_KINDS } from '../../../../src/contract/bulk/selectors.js'
import { useApi, useChange } from '../../api/hooks.js'
import { type ConditionName, type Conditions, conditionNamesOf, STATE_TITLES, STATES_OF } from './conditions.js'
import { FAMILY_OF } from './families.js'
import { Field } from './fields.js'
import { type Choice, kindOf, selectorOf } from './selector.js'

/** A change of conditions; `undefined` removes one. */
type Change = { readonly [Name in ConditionName]?: Conditions[Name] | undefined }

interface ConditionsProps {
  readonly choice: Choice
  readonly set: (change: Change) => void
}

const TEXTS = {
  waiting: { label: 'Waiting for', placeholder: 'order-1 or approval', about: 'Event ID or name of the step' },
  older: { label: 'Older than', placeholder: '2h', about: 'Since its creation, or since it failed for good' },
  younger: { label: 'Younger than', placeholder: '7d', about: 'Since its creation, or since it failed for good' },
  error: { label: 'Error contains', placeholder: 'connection refused', about: 'In the last failed attempt' },
} as const

const NUMBERS = {
  attempts: { label: 'Failed attempts, at least' },
  attemptsMost: { label: 'Failed attempts, at most' },
} as const

/** The fields of conditions, which are tested on the items that pass all filters. */
export function ConditionFields({ choice, set }: ConditionsProps) {
  return (
    <Stack gap="md">
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md">
        {conditionNamesOf(FAMILY_OF[kindOf(choice)]).map((name) => (
          <Condition key={name} name={name} choice={choice} set={set} />
        ))}
      </SimpleGrid>
    </Stack>
  )
}

function Condition({ name, choice, set }: ConditionsProps & { name: ConditionName }) {
  switch (name) {
    case 'state':
      return <StateField choice={choice} set={set} />
    case 'saved':
      return <SavedField choice={choice} set={set} />
    case 'attempts':
    case 'attemptsMost':
      return (
        <NumberInput
          {...NUMBERS[name]}
          min={0}
          allowDecimal={false}
          allowNegative={false}
          value={choice[name] ?? ''}
          onChange={(value) => set({ [name]: typeof value === 'number' ? value : undefined })}
        />
      )
    case 'payload':
      return <PayloadField choice={choice} set={set} />
    default:
      return <Field {...TEXTS[name]} value={choice[name]} onChange={(text) => set({ [name]: text })} />
  }
}

function StateField({ choice, set }: ConditionsProps) {
  const states = STATES_OF[FAMILY_OF[kindOf(choice)]]
  return (
    <Select
      label="State"
      placeholder="Any"
      clearable
      data={states.map((value) => ({ value, label: STATE_TITLES[value] ?? value }))}
      value={choice.state ?? null}
      onChange={(value) => set({ state: value ?? undefined })}
    />
  )
}

/** Saved selectors for the same items. */
function SavedField({ choice, set }: ConditionsProps) {
  const family = FAMILY_OF[kindOf(choice)]
  const { data } = useApi(listSelectors, {})
  const names = (data?.selectors ?? []).filter(({ kind }) => FAMILY_OF[kind] === family).map(({ name }) => name)
  return (
    <Select
      label="Saved selection"
      placeholder={names.length === 0 ? 'None saved yet' : 'None'}
      clearable
      disabled={names.length === 0}
      data={names}
      value={choice.saved ?? null}
      onChange={(value) => set({ saved: value ?? undefined })}
    />
  )
}

function PayloadField({ choice, set }: ConditionsProps) {
  const [typed, setTyped] = useState(choice.payload ?? '')
  return (
    <Textarea
      label="Payload matches"
      description="An expression over its JSON"
      placeholder='$.total > 100 and $.country = "DE"'
      autosize
      maxLength={2_000}
      styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
      value={typed}
      onChange={(event) => {
        const text = event.currentTarget.value
        setTyped(text)
        set({ payload: text.trim() === '' ? undefined : text.trim() })
      }}
    />
  )
}

/** Saves the selection under a name. */
export function SaveSelection({ choice }: { choice: Choice }) {
  const [name, setName] = useState('')
  const save = useChange(saveSelector, {
    refreshes: [listSelectors],
    done: ({ name: saved }) => `The selection was saved as "${saved}".`,
    onDone: () => setName(''),
  })
  const kind = SELECTING_KINDS.find((one) => one === kindOf(choice))
  if (kind === undefined || choice.saved !== undefined || choice.ids !== undefined) return null
  const submit = () => save.mutate({ params: { name: name.trim() }, body: { kind, selector: selectorOf(choice) } })
  return (
    <Group gap="sm" align="flex-end">
      <TextInput
        label="Save this selection as"
        placeholder="stuck-nightly"
        maxLength={64}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <Button variant="default" disabled={name.trim() === ''} loading={save.isPending} onClick={submit}>
        Save
      </Button>
    </Group>
  )
}

/** How many items could not be tested. */
export function Unreadable({ count }: { count: number }) {
  if (count === 0) return null
  return (
    <Text size="sm" c="dimmed">
      {count === 1 ? '1 item' : `${count} items`} could not be read and so did not match: the payload is not JSON, is
      larger than 128 KiB, or is damaged.
    </Text>
  )
}
