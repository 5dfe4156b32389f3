import { Alert, Button, Checkbox, Group, Select, SimpleGrid, Stack, Text, Textarea, TextInput } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import { useState } from 'react'
import { Panel } from '../../components/page.js'
import { counted } from '../../lib/format.js'
import { MomentField } from '../workflows/filters.js'
import { given } from '../workflows/search.js'
import { type Choice, meansEverything, WIZARD_KINDS, type WizardKind } from './selector.js'
import type { Look } from './use-look.js'
import { KIND_WORDS } from './words.js'

type Change = { readonly [Name in keyof Choice]?: Choice[Name] | undefined }

/** What is done, and to which. The number that this would be is always seen. */
export function ChooseStep({
  choice,
  onChange,
  look,
  isSettled,
  onNext,
}: {
  choice: Choice
  onChange: (choice: Choice) => void
  look: UseQueryResult<Look, Error>
  /** Whether `look` is for this choice, and not for one of a moment ago. */
  isSettled: boolean
  onNext: () => void
}) {
  const set = (change: Change) => onChange(given({ ...choice, ...change }) as Choice)
  const kind = choice.kind ?? 'cancelRuns'
  const isReady = isSettled && look.data !== undefined && look.data.matched > 0
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (isReady) onNext()
      }}
    >
      <Stack gap="lg">
        <Panel title="What is done">
          <Select
            aria-label="What is done"
            maw={360}
            data={WIZARD_KINDS.map((value) => ({ value, label: KIND_WORDS[value].title }))}
            value={kind}
            onChange={(value) => onChange(given({ kind: kindOf(value) }))}
          />
          <Text size="sm" c="dimmed" mt={6}>
            {KIND_WORDS[kind].means}
          </Text>
        </Panel>
        <Panel title="To which" about="Every filter that is filled in has to hold. Without any it is everything.">
          <Which key={kind} choice={choice} kind={kind} set={set} />
        </Panel>
        <Group justify="space-between" gap="sm">
          <Count look={look} kind={kind} choice={choice} />
          <Button type="submit" disabled={!isReady} loading={look.isPending || !isSettled}>
            Look at them
          </Button>
        </Group>
      </Stack>
    </form>
  )
}

const kindOf = (value: string | null): WizardKind => WIZARD_KINDS.find((known) => known === value) ?? 'cancelRuns'

function Count({ look, kind, choice }: { look: UseQueryResult<Look, Error>; kind: WizardKind; choice: Choice }) {
  if (look.isError) {
    return (
      <Alert color="red" role="alert">
        {look.error.message}
      </Alert>
    )
  }
  const { item, items } = KIND_WORDS[kind]
  return (
    <Text fw={600} role="status">
      {look.data === undefined
        ? 'Counting…'
        : `${counted(look.data.matched, item, items)} ${look.data.matched === 1 ? 'matches' : 'match'}${meansEverything(choice) && look.data.matched > 0 ? ': that is every one' : ''}`}
    </Text>
  )
}

function Which({ choice, kind, set }: { choice: Choice; kind: WizardKind; set: (change: Change) => void }) {
  const isCancel = kind === 'cancelRuns'
  if (choice.ids !== undefined) return <Ids ids={choice.ids} isCancel={isCancel} onChange={(ids) => set({ ids })} />
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md">
      <Stack gap={8}>
        <Field
          label={isCancel && choice.exact !== true ? 'URL begins with' : 'Whole URL'}
          placeholder="https://example.com/api/nightly"
          value={choice.url}
          onChange={(url) => set({ url, ...(url === undefined && { exact: undefined }) })}
        />
        {isCancel ? (
          <Checkbox
            size="xs"
            label="This is the whole URL, not its beginning"
            checked={choice.exact === true}
            disabled={choice.url === undefined}
            onChange={(event) => set({ exact: event.currentTarget.checked ? true : undefined })}
          />
        ) : null}
      </Stack>
      <Field label="Label" placeholder="nightly" value={choice.label} onChange={(label) => set({ label })} />
      <MomentField
        size="sm"
        label={isCancel ? 'Triggered after' : 'Failed from'}
        value={choice.from}
        onChange={(from) => set({ from })}
      />
      <MomentField
        size="sm"
        label={isCancel ? 'Triggered before' : 'Failed to'}
        value={choice.to}
        onChange={(to) => set({ to })}
      />
      {isCancel ? (
        <>
          <Field label="Host" placeholder="example.com" value={choice.host} onChange={(host) => set({ host })} />
          <Field label="Path" placeholder="/api/nightly" value={choice.path} onChange={(path) => set({ path })} />
        </>
      ) : null}
      <Field label="Caller" placeholder="203.0.113.7" value={choice.caller} onChange={(caller) => set({ caller })} />
      <Field label="Flow-control key" value={choice.flow} onChange={(flow) => set({ flow })} />
      {isCancel ? null : (
        <Field
          label="Status of the failing answer"
          placeholder="500"
          value={choice.status?.toString()}
          onChange={(text) => set({ status: /^\d{1,3}$/.test(text ?? '') ? Number(text) : undefined })}
        />
      )}
      <div>
        <Button variant="subtle" size="compact-sm" onClick={() => set({ ids: [] })}>
          Name {isCancel ? 'runs' : 'dead letters'} by their ids instead
        </Button>
      </div>
    </SimpleGrid>
  )
}

function Field({
  label,
  value,
  onChange,
  placeholder,
}: {
  label: string
  value: string | undefined
  onChange: (value: string | undefined) => void
  placeholder?: string
}) {
  const [typed, setTyped] = useState(value ?? '')
  return (
    <TextInput
      label={label}
      {...(placeholder !== undefined && { placeholder })}
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
  isCancel,
  onChange,
}: {
  ids: readonly string[]
  isCancel: boolean
  onChange: (ids: readonly string[] | undefined) => void
}) {
  const [typed, setTyped] = useState(ids.join('\n'))
  return (
    <Stack gap="xs">
      <Textarea
        label={isCancel ? 'Ids of runs' : 'Ids of dead letters'}
        description="One a line"
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
          Choose by filters instead
        </Button>
      </div>
    </Stack>
  )
}
