import { Button, Checkbox, SimpleGrid, Stack, Textarea, TextInput } from '@mantine/core'
import { useState } from 'react'
import { type Format, isWrong, STATUS_FORMAT, statusOf } from '../../lib/search.js'
import { MomentField } from '../workflows/filters.js'
import { FAMILIES, FAMILY_OF, type FilterName, filterNamesOf } from './families.js'
import { type Choice, selectsActiveRuns } from './selector.js'
import type { Kind } from './words.js'

/** A change of a choice; `undefined` removes a filter. */
export type Change = { readonly [Name in keyof Choice]?: Choice[Name] | undefined }

interface SelectionProps {
  readonly choice: Choice
  readonly kind: Kind
  readonly set: (change: Change) => void
}

/** The filters of a kind of action, or the field for IDs. */
export function SelectionFields({ choice, kind, set }: SelectionProps) {
  const { idsOf } = FAMILIES[FAMILY_OF[kind]]
  if (choice.ids !== undefined) return <Ids ids={choice.ids} of={idsOf} onChange={(ids) => set({ ids })} />
  return (
    <Stack gap="md">
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md">
        {filterNamesOf(kind).map((name) => (
          <Filter key={name} name={name} choice={choice} kind={kind} set={set} />
        ))}
      </SimpleGrid>
      <div>
        <Button variant="subtle" size="compact-sm" onClick={() => set({ ids: [] })}>
          Enter IDs of {idsOf} instead
        </Button>
      </div>
    </Stack>
  )
}

/** The text filters, with their placeholders. */
const TEXTS = {
  label: { label: 'Label', placeholder: 'nightly' },
  host: { label: 'Host', placeholder: 'example.com' },
  path: { label: 'Path', placeholder: '/api/nightly' },
  queue: { label: 'Queue', placeholder: 'mails' },
  group: { label: 'URL group', placeholder: 'new-order' },
  schedule: { label: 'Schedule', placeholder: 'Schedule ID' },
  caller: { label: 'Caller', placeholder: '203.0.113.7' },
  flow: { label: 'Flow-control key', placeholder: '' },
} as const

function Filter({ name, choice, kind, set }: SelectionProps & { name: FilterName }) {
  switch (name) {
    case 'url':
      return <UrlFilter choice={choice} kind={kind} set={set} />
    case 'from':
    case 'to':
      return (
        <MomentField
          size="sm"
          label={FAMILIES[FAMILY_OF[kind]].times[name]}
          value={choice[name]}
          onChange={(moment) => set({ [name]: moment })}
        />
      )
    case 'status':
      return (
        <Field
          label="Status of the failed response"
          placeholder="500"
          format={STATUS_FORMAT}
          value={choice.status?.toString()}
          onChange={(text) => set({ status: statusOf(text) })}
        />
      )
    default:
      return <Field {...TEXTS[name]} value={choice[name]} onChange={(text) => set({ [name]: text })} />
  }
}

function UrlFilter({ choice, kind, set }: SelectionProps) {
  const isByBeginning = selectsActiveRuns(kind)
  return (
    <Stack gap={8}>
      <Field
        label={isByBeginning && choice.exact !== true ? 'URL begins with' : 'Whole URL'}
        placeholder="https://example.com/api/nightly"
        value={choice.url}
        onChange={(url) => set({ url, ...(url === undefined && { exact: undefined }) })}
      />
      {isByBeginning ? (
        <Checkbox
          size="xs"
          label="Match the whole URL, not its beginning"
          checked={choice.exact === true}
          disabled={choice.url === undefined}
          onChange={(event) => set({ exact: event.currentTarget.checked ? true : undefined })}
        />
      ) : null}
    </Stack>
  )
}

/** A text field of a selector. An empty text is no filter. A text in a wrong `format` is none, and blocks the form. */
export function Field({
  label,
  about,
  value,
  onChange,
  placeholder,
  format,
}: {
  label: string
  about?: string
  value: string | undefined
  onChange: (value: string | undefined) => void
  placeholder: string
  format?: Format
}) {
  const [typed, setTyped] = useState(value ?? '')
  return (
    <TextInput
      label={label}
      description={about}
      {...(format !== undefined && { pattern: format.pattern, title: format.enter })}
      error={format !== undefined && isWrong(typed, format) && format.enter}
      placeholder={placeholder}
      value={typed}
      onChange={(event) => {
        const text = event.currentTarget.value
        setTyped(text)
        onChange(text.trim() === '' ? undefined : text.trim())
      }}
    />
  )
}

function Ids({
  ids,
  of,
  onChange,
}: {
  ids: readonly string[]
  of: string
  onChange: (ids: readonly string[] | undefined) => void
}) {
  const [typed, setTyped] = useState(ids.join('\n'))
  return (
    <Stack gap="xs">
      <Textarea
        label={`IDs of ${of}`}
        description="One per line"
        autosize
        minRows={5}
        maxRows={16}
        styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
        value={typed}
        onChange={(event) => {
          setTyped(event.currentTarget.value)
          onChange(event.currentTarget.value.split(/\s+/).filter((id) => id !== ''))
        }}
      />
      <div>
        <Button variant="subtle" size="compact-sm" onClick={() => onChange(undefined)}>
          Use filters instead
        </Button>
      </div>
    </Stack>
  )
}
