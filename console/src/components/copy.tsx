import IconCheck from 'icon:check'
import IconCopy from 'icon:copy'
import IconEye from 'icon:eye'
import IconEyeOff from 'icon:eye-off'
import { ActionIcon, Box, Button, Group, Stack, Text, Tooltip, VisuallyHidden } from '@mantine/core'
import { useTimeout } from '@mantine/hooks'
import { type ReactNode, useState } from 'react'
import { useTask } from '../api/hooks.js'
import { copyText } from '../lib/clipboard.js'
import { announce } from './announce.js'
import classes from './copy.module.css'

const COPIED_MS = 1_500

/** Copies a text. `isCopied` is true for a moment afterwards. */
function useCopy(value: string): { readonly isCopied: boolean; readonly copy: () => void } {
  const [isCopied, setCopied] = useState(false)
  const { start } = useTimeout(() => setCopied(false), COPIED_MS)
  const { mutate } = useTask(() => copyText(value), {
    onDone: () => {
      announce('Copied')
      setCopied(true)
      start()
    },
  })
  return { isCopied, copy: () => mutate() }
}

/** A copy button that shows "Copied" for a moment. */
export function Copy({ value, what }: { value: string; what: string }) {
  const { isCopied, copy } = useCopy(value)
  const label = isCopied ? 'Copied' : `Copy ${what}`
  return (
    <Tooltip label={label}>
      <ActionIcon size="md" onClick={copy} aria-label={label}>
        {isCopied ? <IconCheck size={15} color="var(--hp-ok)" /> : <IconCopy size={15} />}
      </ActionIcon>
    </Tooltip>
  )
}

/** The same as a button with text; `of` says to screen readers what it copies. */
export function CopyTextButton({ value, of }: { value: string; of: string }) {
  const { isCopied, copy } = useCopy(value)
  return (
    <Button
      size="compact-xs"
      variant="default"
      onClick={copy}
      leftSection={isCopied ? <IconCheck size={13} /> : <IconCopy size={13} />}
    >
      {isCopied ? 'Copied' : 'Copy'}
      <VisuallyHidden>{of}</VisuallyHidden>
    </Button>
  )
}

/** Text to paste elsewhere. Secrets in it are shown as dots until the user shows them. */
export function CodeBlock({ code, label, secrets = [] }: { code: string; label: string; secrets?: readonly string[] }) {
  const [isOpen, setOpen] = useState(secrets.length === 0)
  const shown = isOpen ? code : secrets.reduce((text, secret) => text.replaceAll(secret, dots(secret)), code)
  return (
    <Box className={classes.block ?? ''}>
      <ScrollText label={label}>{shown}</ScrollText>
      <Group gap={4} className={classes.tools ?? ''}>
        {secrets.length === 0 ? null : (
          <Button
            size="compact-xs"
            variant="default"
            onClick={() => setOpen(!isOpen)}
            leftSection={isOpen ? <IconEyeOff size={13} /> : <IconEye size={13} />}
          >
            {isOpen ? 'Hide secrets' : 'Show secrets'}
          </Button>
        )}
        <CopyTextButton value={code} of={label} />
      </Group>
    </Box>
  )
}

/** The same with a label above it. */
export function NamedCode(props: Parameters<typeof CodeBlock>[0]) {
  return (
    <Stack gap={4}>
      <Text size="sm" fw={550}>
        {props.label}
      </Text>
      <CodeBlock {...props} />
    </Stack>
  )
}

/** The first thing to do in an empty view: a button, and the command that does the same. */
export function OrCommand({ command, children }: { command: string; children: ReactNode }) {
  return (
    <Stack gap="md">
      <div>{children}</div>
      <Stack gap={4} ta="left">
        <Text size="xs" c="dimmed">
          Or in a terminal:
        </Text>
        <CodeBlock code={command} label="Command" />
      </Stack>
    </Stack>
  )
}

/** A long text with a scroll area of its own, for mouse and keyboard. */
export function ScrollText({ label, children }: { label: string; children: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scroll area must be reachable by keyboard.
    <section className={classes.code} tabIndex={0} aria-label={label}>
      <pre>{children}</pre>
    </section>
  )
}

/** A name with its value, and a button that copies the value. */
export function Fact({
  name,
  children,
  copy,
  secret = false,
}: {
  name: string
  children: ReactNode
  /** The text to copy; absent: no copy button. */
  copy?: string | undefined
  /** Shown as dots; copying still works. */
  secret?: boolean
}) {
  return (
    <div className={classes.fact}>
      <Text size="sm" c="dimmed" className={classes.factName ?? ''}>
        {name}
      </Text>
      <Group gap={4} wrap="nowrap" miw={0} align="flex-start">
        <Text
          size="sm"
          component="div"
          className={classes.factValue ?? ''}
          ff={copy === undefined ? undefined : 'monospace'}
        >
          {secret ? '••••••••••••' : children}
        </Text>
        {copy === undefined ? null : <Copy value={copy} what={name} />}
      </Group>
    </div>
  )
}

const dots = (secret: string): string => '•'.repeat(Math.min(secret.length, 16))
