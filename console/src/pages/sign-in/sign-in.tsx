import { Alert, Anchor, Button, Center, Code, Paper, PasswordInput, Stack, Text, TextInput, Title } from '@mantine/core'
import { type FormEvent, useEffect, useState } from 'react'
import { type ConsoleSession, createConsoleSession, type SignInBody } from '../../../../src/contract/console/session.js'
import { api } from '../../api/client.js'
import { Brand } from '../../app/brand.js'

/** How far a sign-in is. */
type Attempt =
  | { readonly state: 'none' }
  | { readonly state: 'incomplete'; readonly missing: Partial<SignInBody> }
  | { readonly state: 'sent' }
  | { readonly state: 'refused'; readonly reason: string }

/** The sign-in page. It calls back once the console of the signed-in user can be shown. */
export function SignInPage({ onSignedIn }: { onSignedIn: (session: ConsoleSession) => Promise<void> }) {
  const [attempt, setAttempt] = useState<Attempt>({ state: 'none' })
  const missing = attempt.state === 'incomplete' ? attempt.missing : {}
  useEffect(() => {
    document.title = 'Sign in · Homeport'
  }, [])
  const signIn = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const body = credentialsOf(new FormData(event.currentTarget))
    const gaps = missingOf(body)
    if (Object.keys(gaps).length > 0) return setAttempt({ state: 'incomplete', missing: gaps })
    setAttempt({ state: 'sent' })
    try {
      await onSignedIn(await api(createConsoleSession, { body }))
    } catch (error) {
      setAttempt({ state: 'refused', reason: error instanceof Error ? error.message : String(error) })
    }
  }
  return (
    <Center component="main" mih="100dvh" p="md">
      <Stack w="100%" maw={400} gap="lg">
        <Center>
          <Brand />
        </Center>
        <Paper withBorder p="xl" bg="var(--hp-surface)" style={{ borderColor: 'var(--hp-line)' }}>
          <form onSubmit={(event) => void signIn(event)} noValidate>
            <Stack gap="md">
              <Title order={1}>Sign in</Title>
              <TextInput
                label="E-mail"
                name="email"
                type="email"
                autoComplete="username"
                autoFocus
                required
                withAsterisk={false}
                error={missing.email}
              />
              <PasswordInput
                label="API key"
                name="api_key"
                autoComplete="current-password"
                required
                withAsterisk={false}
                error={missing.api_key}
              />
              {attempt.state === 'refused' ? (
                <Alert color="red" role="alert">
                  {attempt.reason}
                </Alert>
              ) : null}
              <Button type="submit" fullWidth loading={attempt.state === 'sent'}>
                Sign in
              </Button>
            </Stack>
          </form>
        </Paper>
        <Text size="sm" c="dimmed" ta="center">
          <Code>homeport env</Code> on the server prints both for the first account. The{' '}
          <Anchor href="/docs" size="sm" underline="always">
            API documentation
          </Anchor>{' '}
          needs no sign-in.
        </Text>
      </Stack>
    </Center>
  )
}

const textOf = (value: FormDataEntryValue | null): string => (typeof value === 'string' ? value : '')

const credentialsOf = (form: FormData): SignInBody => ({
  email: textOf(form.get('email')),
  api_key: textOf(form.get('api_key')),
})

/** What to do about each field that is empty. */
function missingOf({ email, api_key }: SignInBody): Partial<SignInBody> {
  return {
    ...(email.trim() === '' && { email: 'Enter the e-mail address of the account' }),
    ...(api_key.trim() === '' && { api_key: 'Enter an API key' }),
  }
}
